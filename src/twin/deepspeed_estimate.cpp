#include "twin/deepspeed_estimate.h"

#include <algorithm>

#include "model/count.h"

namespace orrery {
namespace {

constexpr double host_buffers = 1.5;

// Of one matrix: DeepSpeed looks at modules, whose own parameters these are.
std::int64_t largest_module(const Architecture& model) {
  return model.hidden * std::max({model.vocab, model.ffn, model.heads * model.head_dim});
}

}  // namespace

DeepspeedEstimate deepspeed_estimate(std::int64_t parameters, std::int64_t largest,
                                     std::int64_t gpus_per_node, std::int64_t nodes,
                                     Offload offload) {
  const auto total = static_cast<double>(parameters);
  const double gpus = static_cast<double>(gpus_per_node * nodes);
  const double gathered = 4 * static_cast<double>(largest);
  const double on_node = total / static_cast<double>(nodes) * host_buffers;
  switch (offload) {
    case Offload::parameters:
      return {Bytes(gathered), Bytes(18 * on_node)};
    case Offload::optimizer:
      return {Bytes(gathered + 2 * total / gpus), Bytes(16 * on_node)};
    case Offload::none:
    case Offload::activations:
      break;
  }
  return {Bytes(gathered + 18 * total / gpus),
          Bytes(gathered * static_cast<double>(gpus_per_node) * host_buffers)};
}

std::optional<DeepspeedEstimate> deepspeed_estimate(const Scenario& scenario) {
  if (!scenario.framework.name.starts_with("deepspeed")) return std::nullopt;
  if (scenario.strategy.zero != Zero::weights) return std::nullopt;
  return deepspeed_estimate(parameters(scenario.model).total(), largest_module(scenario.model),
                            scenario.cluster.gpus_per_node, scenario.cluster.nodes(),
                            scenario.strategy.offload);
}

}  // namespace orrery

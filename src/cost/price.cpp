#include "cost/price.h"

#include <cmath>

#include "cost/collective.h"
#include "cost/kernel.h"

namespace orrery {
namespace {

// DeepSpeed's CPU Adam updates 0.37 G parameters/s in a node of 8 A800 (its ZeRO-3 runs with and
// without offload); each moves 12 bytes of state and 2 of gradient, and writes 12 and 2.
constexpr BytesPerSecond host_adam(0.37e9 * 28);

// The drives of a DGX-2 give its 16 GPUs 25 GB/s (ZeRO-Infinity, arXiv 2104.07857, section 2).
constexpr BytesPerSecond drives_of_a_gpu(25e9 / 16);

// Assumed: kernels that unpack, shift, scale and cast a 4-bit matrix in PyTorch before its product.
constexpr std::int64_t dequantise_launches = 4;

Network network_of(const Machine& machine) {
  Network network = network_of(machine.cluster);
  network.inter = network.inter * machine.framework.network_share.value();
  return network;
}

// Collectives between two kernels, not beside them.
bool stands_in_the_way(GroupKind kind) {
  return kind == GroupKind::tensor || kind == GroupKind::context || kind == GroupKind::expert ||
         kind == GroupKind::expert_tensor;
}

// A collective's start grows with its ranks where a framework walks over them one by one.
Seconds walk_over_ranks(const Comm& comm, const Framework& framework) {
  if (stands_in_the_way(comm.kind)) return Seconds(0);
  return framework.rank_latency.value() * static_cast<double>(comm.group.ranks);
}

double exposed_share(GroupKind kind, const Framework::Exposed& exposed) {
  switch (kind) {
    case GroupKind::tensor:
      return exposed.tensor.value();
    case GroupKind::context:
      return exposed.context.value();
    case GroupKind::expert:
    case GroupKind::expert_tensor:
      return exposed.expert.value();
    default:
      return exposed.data.value();
  }
}

Price price_of(Comm comm, const Network& network, const Framework& framework) {
  if (!framework.experts.once_per_node) comm.copies = 1;
  const Seconds alone = collective_time(comm, network) + walk_over_ranks(comm, framework);
  const double share = exposed_share(comm.kind, framework.exposed);
  if (stands_in_the_way(comm.kind)) return {.duration = alone * share, .stolen = Seconds(0)};
  return {.duration = alone, .stolen = alone * share};
}

// Neighbouring stages share a node, or a leaf of the fabric, only if the whole job does: else some
// pair crosses, and the pipeline waits for that one.
void price_neighbours(const Program& program, const Network& network, Prices& prices) {
  std::int64_t ranks = 0;
  for (const RankClass& stage : program.classes) ranks += stage.ranks;
  if (ranks <= network.gpus_per_node) {
    prices.point_to_point_latency = network.intra_latency;
    prices.point_to_point = network.intra * network.intra_efficiency;
    return;
  }
  const bool crosses = ranks > network.gpus_per_node * network.nodes_per_leaf;
  prices.point_to_point_latency = network.inter_latency;
  prices.point_to_point =
      network.inter * network.inter_efficiency / (crosses ? network.oversubscription : 1);
}

}  // namespace

Prices price(const Program& program, const Machine& machine) {
  const Framework& framework = machine.framework;
  const KernelModel kernels(machine.kernels, framework, machine.attention);
  const Network network = network_of(machine);

  Prices prices{};
  for (const Kernel& kernel : program.kernels) {
    prices.kernels.push_back(kernels(kernel));
    prices.launches.push_back(kernel.dequantised > 0 ? 1 + dequantise_launches : 1);
  }
  for (const Comm& comm : program.comms) {
    prices.comms.push_back(price_of(comm, network, framework));
  }
  price_neighbours(program, network, prices);
  prices.point_to_point = prices.point_to_point / framework.exposed.pipeline.value();
  prices.host = machine.cluster.gpu.pcie.bandwidth.value();
  prices.host_latency = Seconds(10e-6);
  prices.drives = drives_of_a_gpu;
  prices.update = kernels.stream();
  prices.host_update = host_adam / static_cast<double>(machine.cluster.gpus_per_node);
  prices.step_overhead = framework.step_overhead.value();
  prices.launch = framework.launch.value();
  return prices;
}

}  // namespace orrery

#include "tables/operators.h"

#include <algorithm>

#include "physics/attention.h"
#include "physics/attention_decode.h"

namespace orrery {
namespace {

// `Time` is what the physics room calls: (shape, parameters, device) -> KernelTime or more.
template <class P, class Shape, auto Time>
Operator operator_of(std::string_view op) {
  Operator one;
  one.op = op;
  for (const Parameter<P>& parameter : P::parameters()) one.parameters.push_back(parameter.info);
  one.time = [](const KernelShape& shape, const KernelSet& set, const Device& device) {
    return KernelTime(Time(std::get<Shape>(shape), parameters_from<P>(set), device));
  };
  one.times = [](std::span<const KernelRow> rows, const Device& device,
                 std::span<const double> values) {
    const P parameters = parameters_from<P>(values);
    std::vector<double> times;
    times.reserve(rows.size());
    for (const KernelRow& row : rows) {
      times.push_back(Time(std::get<Shape>(row.shape), parameters, device).time.value());
    }
    return times;
  };
  one.values = [](const KernelSet& set) { return values_of(parameters_from<P>(set)); };
  one.write = [](std::span<const double> values, KernelSet& set) {
    write_parameters(parameters_from<P>(values), set);
  };
  return one;
}

}  // namespace

std::span<const Operator> operators() {
  static const std::vector<Operator> all = {
      operator_of<AttentionParameters, AttentionShape, attention_time>("attention-backward"),
      operator_of<AttentionDecodeParameters, AttentionShape, attention_decode_time>(
          "attention-decode"),
      operator_of<AttentionParameters, AttentionShape, attention_time>("attention-encoder"),
      operator_of<AttentionParameters, AttentionShape, attention_time>("attention-prefill"),
      operator_of<CustomAllReduceParameters, CustomAllReduceShape, custom_all_reduce_time>(
          "all-reduce-custom"),
      operator_of<CollectiveParameters, CollectiveShape, collective_time>("collective"),
      operator_of<ExpertExchangeParameters, ExpertExchangeShape, expert_exchange_time>(
          "expert-exchange"),
      operator_of<GemmParameters, GemmShape, gemm_time>("gemm"),
      operator_of<TrafficParameters, TrafficShape, traffic_time>("memory"),
      operator_of<MlaDecodeParameters, MlaDecodeShape, mla_decode_time>("mla-decode"),
      operator_of<MlaPrefillParameters, MlaPrefillShape, mla_prefill_time>("mla-prefill"),
  };
  return all;
}

const Operator* operator_named(std::string_view op) {
  const auto found = std::ranges::find(operators(), op, &Operator::op);
  return found == operators().end() ? nullptr : &*found;
}

}  // namespace orrery

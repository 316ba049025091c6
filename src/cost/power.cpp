#include "cost/power.h"

#include "core/error.h"

namespace orrery {
namespace {

bool uses_matrix_units(OpKind kind) {
  return kind == OpKind::matmul || kind == OpKind::attention || kind == OpKind::attention_scores ||
         kind == OpKind::attention_values || kind == OpKind::matrix_work;
}

JoulesPerFlop energy_per_flop(const Kernel& kernel, const PowerCurve& curve) {
  return uses_matrix_units(kernel.kind) ? curve.matrix[static_cast<std::size_t>(kernel.precision)]
                                        : curve.vector;
}

}  // namespace

Joules energy_of(const Kernel& kernel, Seconds duration, const Device& device) {
  const PowerCurve& curve = device.power;
  return duration * drawn(kernel.flop * energy_per_flop(kernel, curve),
                          (kernel.read + kernel.written) * curve.memory, duration, curve,
                          device.limit);
}

Joules energy_of(Bytes moved, Seconds duration, const Device& device) {
  return duration *
         drawn(Joules(), moved * device.power.memory, duration, device.power, device.limit);
}

Watts host_power_per_gpu(const Cluster& cluster) {
  return cluster.node.host_power.value() / static_cast<double>(cluster.gpus_per_node);
}

Watts at_the_meter(Watts gpu, Watts host, double pue) {
  EXPECT(pue >= 1);
  return (gpu + host) * pue;
}

}  // namespace orrery

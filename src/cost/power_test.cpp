#include "cost/power.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;

const Device& h100() {
  static const Device device = device_of(Catalog::load(default_data_dir()).gpu("h100-sxm"));
  return device;
}

Kernel kernel_of(OpKind kind, Flop flop, Bytes moved) {
  Kernel kernel{};
  kernel.kind = kind;
  kernel.precision = Precision::bf16;
  kernel.flop = flop;
  kernel.read = moved;
  return kernel;
}

// 121.7 W of an idle context, 122 pJ a byte, 1.05 pJ a FLOP at the boost clock.
TEST(Power, AKernelsEnergyIsItsWorkAndTheFloor) {
  const Kernel light = kernel_of(OpKind::matmul, 200_TFLOP, Bytes(0.5e12));
  EXPECT_NEAR(energy_of(light, 1_s, h100()).value(), 121.7 + 210 + 61, 1);
  EXPECT_NEAR(energy_of(light, 2_s, h100()).value(), 2 * 121.7 + 210 + 61, 1);
  EXPECT_NEAR(energy_of(Bytes(1e12), 1_s, h100()).value(), 121.7 + 122, 1);
}

TEST(Power, VectorWorkTakesTheEnergyOfVectorUnits) {
  const Kernel matrix = kernel_of(OpKind::matmul, 10_TFLOP, Bytes());
  const Kernel vector = kernel_of(OpKind::vector_work, 10_TFLOP, Bytes());
  EXPECT_NEAR(energy_of(matrix, 1_s, h100()).value(), 121.7 + 10.5, 1);
  EXPECT_NEAR(energy_of(vector, 1_s, h100()).value(), 121.7 + 58, 1);
}

TEST(Power, NeverAboveTheLimit) {
  const Kernel heavy = kernel_of(OpKind::matmul, 700_TFLOP, Bytes(0.3e12));
  EXPECT_EQ(energy_of(heavy, 1_s, h100()), 700_J);
  Device capped = h100();
  capped.limit = 400_W;
  EXPECT_EQ(energy_of(heavy, 1_s, capped), 400_J);
}

// DGX H100: 10.2 kW rated, 2.4 kW beside its GPUs under training (arXiv 2412.08602, 2506.14551).
TEST(Power, ANodeAndASiteAddTheirs) {
  Cluster cluster;
  cluster.node.host_power = Fact<Watts>(2.4_kW, {Evidence::derived, "s1", "", ""});
  cluster.gpus = cluster.gpus_per_node = 8;
  EXPECT_EQ(host_power_per_gpu(cluster), 300_W);
  EXPECT_EQ(at_the_meter(700_W, 300_W, 1.25), 1250_W);
  EXPECT_THROW(at_the_meter(700_W, 300_W, 0.9), ContractError);
}

}  // namespace
}  // namespace orrery

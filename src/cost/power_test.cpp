#include "cost/power.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;

Gpu gpu(GpuArchitecture architecture, Watts limit, Watts idle, Watts context) {
  const Provenance measured{Evidence::measured, "s1", "", ""};
  Gpu made;
  made.architecture = architecture;
  made.power.limit = Fact<Watts>(limit, measured);
  made.power.idle = Fact<Watts>(idle, measured);
  made.power.context = Fact<Watts>(context, measured);
  return made;
}
const PowerModel h100 =
    power_model_of(gpu(GpuArchitecture::hopper, 700_W, Watts(71.8), Watts(49.9)));
const PowerModel a100 =
    power_model_of(gpu(GpuArchitecture::ampere, 400_W, Watts(53.7), Watts(26.3)));
const PowerModel l40s = power_model_of(gpu(GpuArchitecture::ada, 350_W, Watts(35.6), Watts(66.5)));

// A second of square products of 8192 at `rate`.
GpuWork products(FlopPerSecond rate, Precision precision) {
  const Bytes moved = 3 * 8192.0 * 8192.0 * element_size(precision);
  const Flop each(2.0 * 8192 * 8192 * 8192);
  const Flop done = rate * 1_s;
  return {done, precision, Flop(), moved * (done / each)};
}

TEST(Power, AnIdleContextDrawsItsFloor) {
  EXPECT_NEAR(average_power(h100, {}, 1_s, 700_W).value(), 121.7, 1e-9);
  EXPECT_NEAR(average_power(a100, {}, 1_s, 400_W).value(), 80.0, 1e-9);
}

TEST(Power, AnUnknownFloorIsAShareOfTheLimit) {
  Gpu unknown = gpu(GpuArchitecture::hopper, 700_W, 70_W, 50_W);
  unknown.power.context = Fact<Watts>();
  EXPECT_EQ(power_model_of(unknown).floor, 140_W);
}

// Plateaus at the limit: stas00/ml-engineering@744d01e (H100), aiconfigurator@095f58a (L40S; the
// spread of its plateau is 206 to 270 TFLOP/s).
TEST(Power, LongProductsReachTheLimit) {
  const Watts unlimited(1e9);
  const auto draw = [&](const PowerModel& model, FlopPerSecond rate, Precision precision) {
    return average_power(model, products(rate, precision), 1_s, unlimited).value();
  };
  EXPECT_NEAR(draw(h100, 794_TFLOPs, Precision::bf16), 700, 35);
  EXPECT_NEAR(draw(h100, 1403_TFLOPs, Precision::fp8), 700, 35);
  EXPECT_NEAR(draw(l40s, 240_TFLOPs, Precision::bf16), 350, 17.5);
  EXPECT_NEAR(draw(l40s, 373_TFLOPs, Precision::fp8), 350, 17.5);
  EXPECT_NEAR(draw(a100, 271_TFLOPs, Precision::bf16), 400, 40);
}

// Nothing below the limit holds the clock down: there a FLOP costs 1.16 pJ on Hopper instead of the
// 0.69 pJ at the clock of a long, limited product; at the limit the limit is what is drawn.
TEST(Power, AKernelDrawsFullClockEnergyOrTheLimit) {
  const Joules light = energy_under(700_W, h100, products(200_TFLOPs, Precision::bf16), 1_s);
  EXPECT_NEAR(light.value(), 200e12 * 0.69e-12 * 1.6, 40);
  EXPECT_GT(light, energy(h100, products(200_TFLOPs, Precision::bf16)));
  const Joules heavy = energy_under(700_W, h100, products(680_TFLOPs, Precision::bf16), 1_s);
  EXPECT_NEAR(heavy.value(), 700 - 121.7, 1e-9);
  EXPECT_EQ(energy_under(100_W, h100, products(680_TFLOPs, Precision::bf16), 1_s), Joules());
}

// te42kyfo/gpu-benches@ded6f57: (TB/s, fp32 TFLOP/s, W), H200 at 1980 MHz and A100 at 1410 MHz.
TEST(Power, MeetsTheRooflineSweep) {
  struct Row {
    const PowerModel& model;
    double rate, vector, watts;
  };
  for (const Row& row :
       {Row{h100, 3.759, 0.94, 572}, Row{h100, 3.78, 1.89, 578}, Row{h100, 0.415, 42.44, 396},
        Row{a100, 1.372, 0.343, 226}, Row{a100, 0.165, 19.19, 185}, Row{l40s, 0.845, 0.211, 199}}) {
    const GpuWork work{Flop(), Precision::fp32, Flop(row.vector * 1e12), Bytes(row.rate * 1e12)};
    EXPECT_NEAR(average_power(row.model, work, 1_s, Watts(1e9)).value() / row.watts, 1, 0.09)
        << row.watts;
  }
}

TEST(Power, NeverAboveTheLimitAndNeverBelowTheFloor) {
  for (double share = 0; share < 3; share += 0.1) {
    const GpuWork work = products(FlopPerSecond(1e15 * share), Precision::bf16);
    const Watts now = average_power(h100, work, 1_s, 500_W);
    EXPECT_LE(now, 500_W);
    EXPECT_GE(now, h100.floor);
  }
}

TEST(Power, FewerBitsTakeLess) {
  for (const PowerModel& model : {h100, a100, l40s}) {
    EXPECT_LT(model.matrix(Precision::fp4), model.matrix(Precision::fp8));
    EXPECT_LT(model.matrix(Precision::fp8), model.matrix(Precision::bf16));
    EXPECT_LT(model.matrix(Precision::bf16), model.matrix(Precision::tf32));
    EXPECT_LT(model.matrix(Precision::tf32), model.matrix(Precision::fp64));
  }
}

TEST(Power, TheSameWorkInMoreTimeDrawsLess) {
  const GpuWork work = products(500_TFLOPs, Precision::bf16);
  EXPECT_LT(average_power(h100, work, 2_s, 700_W), average_power(h100, work, 1_s, 700_W));
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

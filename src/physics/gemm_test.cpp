// Laws of matrix products for every GPU of the catalog, and published timings that bear on them.
#include "physics/gemm.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "catalog/catalog.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

GemmParameters parameters(const Gpu& gpu, const std::string& variant = "bf16",
                          const std::string& library = "") {
  return parameters_from<GemmParameters>(
      *catalog().kernel_sets().find("gemm", variant, library, gpu).set);
}

GemmShape square(std::int64_t size, GemmFormat format = GemmFormat::bf16) {
  return {.m = size, .n = size, .k = size, .format = format};
}

double tflops(const GemmTime& time) { return time.flop / time.time / FlopPerSecond(1e12); }

TEST(Gemm, HasFewParameters) { EXPECT_LE(GemmParameters::parameters().size(), 13u); }

RC_GTEST_PROP(Gemm, IsNeverAboveTheRooflineOfAnyGpu, ()) {
  const auto names = catalog().names(EntryKind::gpu);
  const Gpu gpu = catalog().gpu(*rc::gen::elementOf(names));
  const Device device = device_of(gpu);
  const GemmShape shape = {.m = *rc::gen::inRange<std::int64_t>(1, 40'000),
                           .n = *rc::gen::inRange<std::int64_t>(1, 40'000),
                           .k = *rc::gen::inRange<std::int64_t>(1, 40'000),
                           .format = GemmFormat::fp16};
  const GemmTime time = gemm_time(shape, parameters(gpu), device);
  RC_ASSERT(time.flop / time.time <= device.peak(Precision::fp16) * (time.clock / device.boost));
  RC_ASSERT(time.bytes / time.time <= device.memory);
  RC_ASSERT(time.power <= device.limit * (1 + 1e-9) ||
            time.clock <= device.power.lowest * (1 + 1e-9));
}

RC_GTEST_PROP(Gemm, MoreBandwidthClockOrPowerNeverTakesLonger, ()) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  const GemmShape shape = {.m = *rc::gen::inRange<std::int64_t>(1, 20'000),
                           .n = *rc::gen::inRange<std::int64_t>(1, 20'000),
                           .k = *rc::gen::inRange<std::int64_t>(1, 20'000)};
  const GemmParameters p = parameters(gpu);
  const Device device = device_of(gpu, Watts(*rc::gen::inRange(250, 700)));
  const Seconds now = gemm_time(shape, p, device).time;
  Device wider = device, stronger = device;
  wider.memory *= 1.3;
  stronger.limit *= 1.2;
  RC_ASSERT(gemm_time(shape, p, wider).time <= now * (1 + 1e-9));
  RC_ASSERT(gemm_time(shape, p, stronger).time <= now * (1 + 1e-9));
}

TEST(Gemm, IsFiniteForEveryLegalShape) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  constexpr std::int64_t huge = std::int64_t{1} << 31;
  for (const std::int64_t m : {std::int64_t{1}, huge}) {
    for (const std::int64_t n : {std::int64_t{1}, huge}) {
      for (const std::int64_t k : {std::int64_t{1}, huge}) {
        for (const TilePolicy policy :
             {TilePolicy::free, TilePolicy::cutlass, TilePolicy::deepgemm}) {
          const GemmTime time = gemm_time({.m = m, .n = n, .k = k, .batch = 7, .policy = policy},
                                          parameters(gpu), device_of(gpu));
          EXPECT_TRUE(std::isfinite(time.time.value())) << m << " " << n << " " << k;
          EXPECT_GT(time.time, Seconds());
        }
      }
    }
  }
}

// A grid of one wave against one tile more, with whole waves and with smooth ones.
TEST(Gemm, WavesAreWholeOrSmoothByTheirParameter) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  Device device = device_of(gpu, Watts(1e6));
  device.memory *= 100;
  const auto step = [&](double quantisation) {
    GemmParameters p = parameters(gpu);
    p.quantisation = quantisation;
    const auto time = [&](std::int64_t tiles) {
      return gemm_time({.m = 128 * tiles,
                        .n = 128,
                        .k = 8192,
                        .format = GemmFormat::fp8,
                        .policy = TilePolicy::cutlass,
                        .quantises = false},
                       p, device)
                 .time -
             p.start;
    };
    return time(134) / time(132);
  };
  EXPECT_GT(step(1), 1.8);
  EXPECT_LT(step(0), 1.1);
}

TEST(Gemm, CutsTheInnerDimensionWhereTilesLeaveSmsIdle) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  const auto splits = [&](std::int64_t m, std::int64_t n) {
    return gemm_time({.m = m, .n = n, .k = 16384}, parameters(gpu), device_of(gpu)).splits;
  };
  EXPECT_GT(splits(128, 256), 1);
  EXPECT_EQ(splits(8192, 8192), 1);
}

TEST(Gemm, ABatchCostsAsManyProductsTogetherOrLessThanOneByOne) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  const auto time = [&](std::int64_t batch) {
    return gemm_time({.m = 512, .n = 512, .k = 512, .batch = batch}, parameters(gpu),
                     device_of(gpu))
        .time;
  };
  EXPECT_LE(time(64), 64 * time(1));
  EXPECT_GE(time(64), time(1));
}

TEST(Gemm, QuantisingIsPaidApart) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  const GemmParameters p = parameters(gpu, "fp8");
  GemmShape shape = square(4096, GemmFormat::fp8);
  const GemmTime with = gemm_time(shape, p, device_of(gpu));
  shape.quantises = false;
  const GemmTime without = gemm_time(shape, p, device_of(gpu));
  const Seconds cast = p.quantise + Bytes(3.0 * 4096 * 4096) / p.quantise_rate;
  EXPECT_NEAR((with.start - without.start) / cast, 1, 1e-9);
  EXPECT_GT(with.time, without.time);
}

TEST(Gemm, SparseWeightsHalveTheArithmeticAndTheBytes) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  GemmShape shape = {.m = 1, .n = 16384, .k = 16384};
  const GemmTime dense = gemm_time(shape, parameters(gpu), device_of(gpu));
  shape.sparse = true;
  const GemmTime sparse = gemm_time(shape, parameters(gpu), device_of(gpu));
  EXPECT_NEAR(sparse.bytes / dense.bytes, 9.0 / 16, 1e-3);
  EXPECT_LT(sparse.time, dense.time);
}

// Median of large products (m >= 1024, n and k >= 2048, over 0.5 ms) of ai-dynamo/aiconfigurator's
// tables at 095f58a, and the best of stas00/ml-engineering's search at 744d01e: TFLOP/s at 700 W.
TEST(Gemm, PlateausOfH100AndH200) {
  const auto reached = [](const char* name, GemmFormat format) {
    const Gpu gpu = catalog().gpu(name);
    GemmShape shape = square(8192, format);
    shape.quantises = false;
    return tflops(gemm_time(shape, parameters(gpu, std::string(to_text(format))), device_of(gpu)));
  };
  EXPECT_NEAR(reached("h100-sxm", GemmFormat::bf16), 785, 0.06 * 785);
  EXPECT_NEAR(reached("h200-sxm", GemmFormat::bf16), 780, 0.06 * 780);
  EXPECT_NEAR(reached("h100-sxm", GemmFormat::fp8), 1330, 0.08 * 1330);
  EXPECT_NEAR(reached("h200-sxm", GemmFormat::fp8), 1335, 0.08 * 1335);
}

}  // namespace
}  // namespace orrery

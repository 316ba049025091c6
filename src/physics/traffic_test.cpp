#include "physics/traffic.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "catalog/catalog.h"

namespace orrery {
namespace {

TrafficParameters usual() {
  std::vector<double> starts;
  for (const auto& parameter : TrafficParameters::parameters()) {
    starts.push_back(parameter.info.start);
  }
  return parameters_from<TrafficParameters>(starts);
}

// 100 SMs, 2 TB/s, 40 MB of L2; nothing is drawn, so nothing is throttled.
Device plain() {
  Device device;
  device.sms = 100;
  device.boost = Hertz(1.5e9);
  device.memory = BytesPerSecond(2e12);
  device.l2 = Bytes(40e6);
  device.power.boost = device.boost;
  device.power.lowest = Hertz(0.3e9);
  device.power.reference = device.boost;
  device.limit = Watts(1000);
  return device;
}

TrafficShape shape_of(std::string_view kernel, std::int64_t rows, std::int64_t cols,
                      Bytes element = Bytes(2)) {
  return traffic_shape(*traffic_kernel_named(kernel), rows, cols, element);
}

double micros(const TrafficShape& shape, const TrafficParameters& p = usual(),
              const Device& device = plain()) {
  return traffic_time(shape, p, device).time.value() * 1e6;
}

TEST(Traffic, CountsOperandsAsTheTablesDo) {
  const auto per_element = [](std::string_view kernel, double element) {
    const TrafficShape shape = shape_of(kernel, 1, 1, Bytes(element));
    return shape.bytes().value();
  };
  EXPECT_EQ(per_element("rmsnorm", 2), 4);
  EXPECT_EQ(per_element("residual_add", 2), 6);
  EXPECT_EQ(per_element("silu_and_mul", 2), 6);
  EXPECT_EQ(per_element("rope", 2), 4);
  EXPECT_EQ(per_element("rmsnorm_residual", 2), 8);
  EXPECT_EQ(per_element("quantise_fp8", 2), 3);
  EXPECT_EQ(per_element("absmax", 2), 2);
  EXPECT_EQ(per_element("adamw", 4), 28);
}

// In the limit of a large array nothing but bandwidth counts: 1 GiB x 6 B / (0.5 x 2 TB/s).
TEST(Traffic, OfLargeArraysIsBandwidth) {
  TrafficParameters p = usual();
  p.stream = 0.5;
  p.sm_rate = BytesPerSecond(400e9);
  const double elements = std::pow(2.0, 30);
  EXPECT_NEAR(micros(shape_of("add", 1 << 20, 1 << 10), p), elements * 6 / 1e12 * 1e6,
              0.01 * elements * 6 / 1e6);
}

TEST(Traffic, OfNearlyNothingIsTheStart) {
  TrafficParameters p = usual();
  p.start = Seconds(5e-6);
  EXPECT_NEAR(micros(shape_of("add", 1, 32), p), 5, 0.2);
}

TEST(Traffic, OfReplayedSmallArraysComesFromTheCache) {
  TrafficShape small = shape_of("add", 4096, 512), large = shape_of("add", 65536, 8192);
  const double small_once = micros(small), large_once = micros(large);
  small.replayed = large.replayed = true;
  EXPECT_LT(traffic_time(small, usual(), plain()).bytes, 0.01 * small.bytes());
  EXPECT_LE(micros(small), small_once);
  EXPECT_NEAR(micros(large), large_once, 0.01 * large_once);
}

// A row that is passed twice is fetched twice once the rows in flight outgrow the L2.
TEST(Traffic, OfASecondPassIsCachedWhileRowsAreNarrow) {
  TrafficParameters p = usual();
  p.at_once = 16;
  const TrafficShape narrow = shape_of("layernorm", 1 << 20, 1024, Bytes(4));
  const TrafficShape wide = shape_of("layernorm", 1 << 14, 1 << 16, Bytes(4));
  EXPECT_NEAR(traffic_time(narrow, p, plain()).bytes / narrow.bytes(), 1.0, 0.01);
  EXPECT_NEAR(traffic_time(wide, p, plain()).bytes / wide.bytes(), 1.5, 0.01);
}

TEST(Traffic, OfWholeWavesIsASteppedLine) {
  TrafficParameters p = usual();
  p.quantisation = 1;
  p.at_once = 2;
  p.row = Seconds(1e-6);
  const double one = micros(shape_of("rmsnorm", 200, 64), p);
  EXPECT_NEAR(micros(shape_of("rmsnorm", 201, 64), p), micros(shape_of("rmsnorm", 400, 64), p),
              0.01);
  EXPECT_GT(micros(shape_of("rmsnorm", 201, 64), p), one + 1);
}

RC_GTEST_PROP(Traffic, IsNeverFasterThanMemoryAndGrowsWithEverything, ()) {
  const auto& kernel =
      traffic_kernels()[*rc::gen::inRange<std::size_t>(0, traffic_kernels().size())];
  const auto size = rc::gen::map(rc::gen::inRange(0, 32),
                                 [](int bits) { return std::int64_t{1} << std::min(bits, 31); });
  const std::int64_t rows = *size, cols = *size;
  const TrafficShape shape = traffic_shape(kernel, rows, cols, Bytes(2));
  const KernelTime time = traffic_time(shape, usual(), plain());
  RC_ASSERT(std::isfinite(time.time.value()));
  RC_ASSERT(time.time > shape.bytes() / plain().memory);
  RC_ASSERT(time.bytes >= shape.bytes());
  if (rows < (std::int64_t{1} << 31)) {
    const TrafficShape taller = traffic_shape(kernel, 2 * rows, cols, Bytes(2));
    RC_ASSERT(traffic_time(taller, usual(), plain()).time >= time.time);
  }
  Device faster = plain();
  faster.memory *= 2;
  RC_ASSERT(traffic_time(shape, usual(), faster).time <= time.time);
}

TEST(Traffic, OfEveryFittedSetIsFiniteAndWithinBandwidth) {
  const Catalog catalog = Catalog::load(default_data_dir());
  int sets = 0;
  for (const KernelSet& set : catalog.kernel_sets().all()) {
    if (set.op != "memory") continue;
    ++sets;
    const auto p = parameters_from<TrafficParameters>(set);
    const Device device = device_of(catalog.gpu(set.gpu));
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 31}) {
      for (const std::int64_t cols : {std::int64_t{1}, std::int64_t{8192}, std::int64_t{1} << 31}) {
        const TrafficShape shape = shape_of("rmsnorm", rows, cols);
        const KernelTime time = traffic_time(shape, p, device);
        EXPECT_TRUE(std::isfinite(time.time.value())) << set.place;
        EXPECT_GT(time.time, shape.bytes() / device.memory) << set.place;
        EXPECT_LE(time.power, device.limit * 1.001) << set.place;
      }
    }
  }
  EXPECT_GT(sets, 10);
}

}  // namespace
}  // namespace orrery

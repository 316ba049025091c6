#include "physics/power.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "core/error.h"
#include "physics/device.h"

namespace orrery {
namespace {

using namespace literals;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

std::size_t index_of(Precision precision) { return static_cast<std::size_t>(precision); }

// A large product that reads each operand once and issues at `issue` of the boost clock's peak.
Demand product(const Device& device, Precision precision, double issue) {
  const double edge = 8192;
  const Flop flop(2 * edge * edge * edge);
  const Bytes bytes = edge * edge * (2 * element_size(precision) + Bytes(2));
  return {.compute = flop / (issue * device.peak(precision)),
          .memory = bytes / device.memory,
          .switching = flop * device.power.matrix[index_of(precision)],
          .traffic = bytes * device.power.memory};
}

Operating at_limit(const Device& device, const Demand& demand) {
  return operate(demand, device.power, device.limit);
}

// --- the law itself ------------------------------------------------------------------------------

// By hand: 100 W of floor, 40 W at the boost clock, and in a second 200 J of arithmetic and 60 J of
// traffic.
TEST(Power, AddsItsTerms) {
  const PowerCurve curve = {.floor = 100_W,
                            .clocked = 40_W,
                            .boost = Hertz(2e9),
                            .lowest = Hertz(0.2e9),
                            .voltage_floor = 0.5,
                            .exponent = 2};
  const Demand second = {.compute = 1_s, .switching = 200_J, .traffic = 60_J};
  const Operating free = operate(second, curve, 1_kW);
  EXPECT_DOUBLE_EQ(free.power.value(), 400);
  EXPECT_DOUBLE_EQ(free.energy().value(), 400);
  EXPECT_FALSE(free.limited);
  // At 0.8 of the clock: 100 + 32 + (200 x 0.64 + 60) x 0.8.
  const Operating held = operate(second, curve, Watts(282.4));
  EXPECT_NEAR(held.clock.value() / 1.6e9, 1, 1e-6);
  EXPECT_NEAR(held.time.value(), 1.25, 1e-6);
  EXPECT_TRUE(held.limited);
  // At half of it and below, the voltage does not fall: 100 + 20 + (200 x 0.5 + 60) x 0.5.
  EXPECT_NEAR(operate(second, curve, Watts(200)).clock.value() / 1e9, 1, 1e-6);
  // Nothing keeps within 50 W.
  EXPECT_EQ(operate(second, curve, 50_W).clock, curve.lowest);
}

TEST(Power, MemorySlowsOnlyBelowTheFabricsClock) {
  const PowerCurve curve = {.floor = 50_W,
                            .boost = Hertz(1e9),
                            .lowest = Hertz(0.1e9),
                            .voltage_floor = 0.25,
                            .exponent = 2,
                            .fabric = 0.5};
  const Demand stream = {.memory = 1_s, .switching = 100_J, .traffic = 100_J};
  EXPECT_DOUBLE_EQ(operate(stream, curve, 250_W).time.value(), 1);
  EXPECT_DOUBLE_EQ(operate(stream, curve, 180_W).time.value(), 1);
  // Half the traffic at a quarter of the clock: 50 + (100 x 0.25 + 100) / 2.
  const Operating slow = operate(stream, curve, Watts(112.5));
  EXPECT_NEAR(slow.clock.value() / 0.25e9, 1, 1e-6);
  EXPECT_NEAR(slow.time.value(), 2, 1e-6);
}

// --- every GPU of the catalog -------------------------------------------------------------------

void for_each_gpu(const std::function<void(const Device&, const Gpu&)>& check) {
  for (const std::string& name : catalog().names(EntryKind::gpu)) {
    SCOPED_TRACE(name);
    const Gpu gpu = catalog().gpu(name);
    check(device_of(gpu), gpu);
  }
}

Demand any_demand(const Device& device) {
  const auto part = [](int most) { return *rc::gen::inRange(0, most) * 1e-6; };
  Demand demand = {.fixed = Seconds(part(50)),
                   .compute = Seconds(part(5000) + 1e-7),
                   .memory = Seconds(part(5000)),
                   .overlap = *rc::gen::inRange(12, 100) / 10.0};
  demand.switching = demand.compute * device.peak(Precision::fp16) *
                     device.power.matrix[index_of(Precision::fp16)];
  demand.traffic = demand.memory * device.memory * device.power.memory;
  demand.toggle = *rc::gen::inRange(0, 101) / 100.0;
  return demand;
}

TEST(PowerLaws, WithinTheLimitOrAtTheLowestClock) {
  for_each_gpu([](const Device& device, const Gpu&) {
    EXPECT_TRUE(rc::check([&] {
      const Demand demand = any_demand(device);
      const Watts limit(*rc::gen::inRange(20, 1300));
      const Operating now = operate(demand, device.power, limit);
      RC_ASSERT(now.power <= limit || now.clock == device.power.lowest);
      RC_ASSERT(now.clock >= device.power.lowest * (1 - 1e-12) && now.clock <= device.boost);
      RC_ASSERT(is_finite(now.time) && is_finite(now.power));
      RC_ASSERT(now.limited == (now.clock < device.boost));
    }));
  });
}

TEST(PowerLaws, ALowerLimitIsNeverFasterAndNeverDrawsMore) {
  for_each_gpu([](const Device& device, const Gpu&) {
    EXPECT_TRUE(rc::check([&] {
      const Demand demand = any_demand(device);
      const Watts high(*rc::gen::inRange(20, 1300));
      const Watts low = high * (*rc::gen::inRange(1, 100) / 100.0);
      const Operating more = operate(demand, device.power, high);
      const Operating less = operate(demand, device.power, low);
      RC_ASSERT(less.time >= more.time);
      RC_ASSERT(less.power <= more.power * (1 + 1e-9));
      RC_ASSERT(less.clock <= more.clock);
    }));
  });
}

TEST(PowerLaws, ZerosDrawLessAndAreNeverSlower) {
  for_each_gpu([](const Device& device, const Gpu&) {
    Demand demand = product(device, Precision::fp16, 0.9);
    const Operating random = at_limit(device, demand);
    demand.toggle = device.power.zeros;
    const Operating zeros = at_limit(device, demand);
    EXPECT_LE(zeros.time, random.time);
    EXPECT_LE(zeros.energy(), random.energy());
  });
}

// Two kernels one after the other draw the sum of their energies; so do two halves of one.
TEST(PowerLaws, EnergyAdds) {
  for_each_gpu([](const Device& device, const Gpu&) {
    const Demand whole = product(device, Precision::fp16, 0.9);
    Demand half = whole;
    half.compute = whole.compute / 2;
    half.memory = whole.memory / 2;
    half.switching = whole.switching / 2;
    half.traffic = whole.traffic / 2;
    EXPECT_NEAR(
        2 * at_limit(device, half).energy().value() / at_limit(device, whole).energy().value(), 1,
        1e-6);
  });
}

// What is asked for a duration alone agrees with what the clock at the limit says.
TEST(PowerLaws, APowerOverADurationIsThatOfTheOperatingPoint) {
  for_each_gpu([](const Device& device, const Gpu&) {
    for (const double issue : {0.1, 0.5, 0.9}) {
      const Demand demand = product(device, Precision::fp16, issue);
      const Operating now = at_limit(device, demand);
      const Watts mean =
          drawn(demand.switching, demand.traffic, now.time, device.power, device.limit);
      EXPECT_NEAR(mean / now.power, 1, 1e-6) << issue;
    }
  });
}

TEST(PowerLaws, FewerBitsTakeLess) {
  for_each_gpu([](const Device& device, const Gpu& gpu) {
    JoulesPerFlop before(1);
    for (const Precision precision :
         {Precision::fp64, Precision::tf32, Precision::bf16, Precision::fp8, Precision::fp4}) {
      if (!gpu.supports(precision)) continue;
      EXPECT_LT(device.power.matrix[index_of(precision)], before) << to_text(precision);
      EXPECT_GT(device.power.matrix[index_of(precision)], JoulesPerFlop());
      before = device.power.matrix[index_of(precision)];
    }
  });
}

// A card is made for its limit: a kernel that does nothing stays under 0.6 of it, and large
// products come within a tenth of it or run at the boost clock.
TEST(PowerLaws, LimitsSuitTheirCards) {
  for_each_gpu([](const Device& device, const Gpu&) {
    EXPECT_LT(waiting_power(device.power), device.limit * 0.6);
    const Operating now = at_limit(device, product(device, Precision::fp16, 0.9));
    EXPECT_TRUE(now.clock == device.boost || now.power > device.limit * 0.9);
    EXPECT_GT(now.clock, device.power.lowest * 2);
  });
}

}  // namespace
}  // namespace orrery

// Bubbles and memory of lowered pipelines against the papers' formulas (docs/architecture.md,
// Schedules): a model of equal layers, priced by hand, whose messages cost nothing.
#include <gtest/gtest.h>

#include "cost/estimate.h"
#include "cost/memory.h"
#include "plan/test_walk.h"

namespace orrery {
namespace {

struct Times {
  double forward, input_gradient, weight_gradient;
  double sum() const { return forward + input_gradient + weight_gradient; }
};

struct Case {
  Schedule schedule;
  std::int64_t pp, vpp, micro_batches;
};

Strategy strategy(const Case& c) {
  Strategy s;
  s.schedule = c.schedule, s.pp = c.pp, s.vpp = c.vpp;
  s.global_batch = c.micro_batches, s.seq_len = 64;
  return s;
}

Trained trained(const Case& c, std::int64_t layers) {
  return trained(llama_like("equal", {layers, 64, 4, 4, 16, 128, 32}), strategy(c));
}

// Each layer takes the given times, embedding and head none.
Prices prices(const Program& program, Times times) {
  Prices prices{};
  for (const Kernel& kernel : program.kernels) {
    const double time = kernel.name == "qkv"         ? times.forward
                        : kernel.name == "qkv.dgrad" ? times.input_gradient
                        : kernel.name == "qkv.wgrad" ? times.weight_gradient
                                                     : 0;
    prices.kernels.push_back(Seconds(time));
  }
  for (std::size_t i = 0; i < program.comms.size(); ++i) prices.comms.push_back({});
  prices.point_to_point = BytesPerSecond(1e300);
  prices.host = prices.update = prices.host_update = BytesPerSecond(1e300);
  return prices;
}

// Of the whole step, in units of a layer's times; each stage has `layers` / pp layers.
double bubble(const Case& c, std::int64_t layers, Times times) {
  const Trained t = trained(c, layers);
  const Estimate e = estimate(t.program, prices(t.program, times));
  const double work =
      static_cast<double>(c.micro_batches * layers) / static_cast<double>(c.pp) * times.sum();
  EXPECT_NEAR(e.breakdown.bubble.value(), e.step.value() - work, 1e-9);
  return e.step.value() - work;
}

const Times equal = {1, 1, 1}, unequal = {10, 12, 8};

TEST(Pipeline, OneFOneBWaitsForAllOthers) {
  EXPECT_NEAR(bubble({Schedule::one_f_one_b, 4, 1, 8}, 4, unequal), 3 * unequal.sum(), 1e-9);
  EXPECT_NEAR(bubble({Schedule::interleaved, 4, 2, 8}, 8, unequal), 3 * unequal.sum(), 1e-9);
}

TEST(Pipeline, ZeroBubbleH1FillsItWithWeightGradients) {
  EXPECT_NEAR(bubble({Schedule::zero_bubble_h1, 4, 1, 4}, 4, unequal), 3 * (10 + 12 - 8), 1e-9);
  EXPECT_NEAR(bubble({Schedule::zero_bubble_h1, 8, 1, 24}, 16, unequal), 2 * 7 * (10 + 12 - 8),
              1e-9);
}

TEST(Pipeline, ZeroBubbleVLosesTheStartOnly) {
  EXPECT_NEAR(bubble({Schedule::zero_bubble_v, 4, 2, 8}, 8, equal), 3, 1e-9);
  EXPECT_NEAR(bubble({Schedule::zero_bubble_v, 8, 2, 40}, 16, equal), 7, 1e-9);
}

TEST(Pipeline, DualPipeMeetsInTheMiddle) {
  EXPECT_NEAR(bubble({Schedule::dual_pipe, 4, 2, 8}, 4, equal), 1, 1e-9);
  EXPECT_NEAR(bubble({Schedule::dual_pipe, 8, 2, 20}, 8, equal), 3, 1e-9);
}

// --- memory
// ----------------------------------------------------------------------------------------

Bytes activations(const Footprint& footprint) {
  return footprint[static_cast<std::size_t>(MemoryTerm::activations)];
}

// The most activations of any stage, as a multiple of what all layers of a stage keep of one
// micro-batch.
double in_flight(const Case& c) {
  const Trained t = trained(c, 16 * c.pp), alone = trained({Schedule::gpipe, 1, 1, 1}, 16);
  Bytes most;
  for (const Footprint& footprint : peak_memory(t.program).by_class) {
    most = std::max(most, activations(footprint));
  }
  return most / activations(peak_memory(alone.program).by_class[ClassId(0)]);
}

TEST(Pipeline, ZeroBubblesHoldAsMuchAsOneFOneB) {
  EXPECT_NEAR(in_flight({Schedule::one_f_one_b, 4, 1, 12}), 4, 0.2);
  EXPECT_NEAR(in_flight({Schedule::zero_bubble_h1, 4, 1, 12}), 4, 0.2);
  EXPECT_NEAR(in_flight({Schedule::zero_bubble_v, 4, 2, 12}), 4, 0.2);
}

TEST(Pipeline, DualPipeHoldsOneMicroBatchMoreAndTheModelTwice) {
  EXPECT_NEAR(in_flight({Schedule::dual_pipe, 4, 2, 12}), 5, 0.2);
  const auto weights = [](const Case& c) {
    const Trained t = trained(c, 8);
    Bytes sum;
    for (const Footprint& footprint : peak_memory(t.program).by_class) {
      sum += footprint[static_cast<std::size_t>(MemoryTerm::weights)];
    }
    return sum;
  };
  EXPECT_DOUBLE_EQ(
      weights({Schedule::dual_pipe, 4, 2, 12}) / weights({Schedule::one_f_one_b, 4, 1, 12}), 2);
}

}  // namespace
}  // namespace orrery

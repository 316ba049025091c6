// Programs played on streams: what they take can be worked out by hand.
#include "plan/toy_replay.h"

#include <gtest/gtest.h>

#include "plan/test_walk.h"

namespace orrery {
namespace {

// A layer's forward pass takes 1 and its backward pass 2; nothing else takes time.
ToyReplay::Price layers_only(const Program& program) {
  return [&program](const Instruction& instruction) {
    const auto* compute = std::get_if<Compute>(&instruction.what);
    if (!compute) return 0.0;
    const std::string& name = program.kernels[compute->kernel].name;
    return name == "fc1" ? 1.0 : name == "fc1.dgrad" ? 2.0 : 0.0;
  };
}

Architecture small(std::int64_t layers) {
  return llama_like("small", {layers, 16, 4, 4, 4, 32, 64});
}

Strategy pipeline(std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches) {
  Strategy s;
  s.pp = pp, s.vpp = vpp, s.seq_len = 8, s.global_batch = micro_batches;
  if (vpp > 1) s.schedule = Schedule::interleaved;
  return s;
}

Played played(const Strategy& s, std::int64_t layers, bool one_stream = false) {
  const Trained t = trained(small(layers), s);
  return ToyReplay(t.program, layers_only(t.program), one_stream).play();
}

TEST(ToyReplay, TwoStagesOfOneForwardOneBackward) {
  // Stage 0: F F B F B F B B, one layer each; stage 1 starts at 1 and never waits again; stage 0
  // ends with the backward of the last micro-batch, 2 after stage 1: 1 + 4 * 3 + 2.
  EXPECT_EQ(played(pipeline(2, 1, 4), 2).makespan, 15);
}

TEST(ToyReplay, TheBubbleIsThatOfThePapers) {
  for (const std::int64_t m : {8, 16}) {
    for (const std::int64_t pp : {2, 4, 8}) {
      const double stage = 3 * 16.0 / static_cast<double>(pp);    // forward and backward
      const double bubble = static_cast<double>(pp - 1) * stage;  // (arXiv 2104.04473, 2.2)
      const double ideal = static_cast<double>(m) * stage;
      EXPECT_EQ(played(pipeline(pp, 1, m), 16).makespan, ideal + bubble);
      EXPECT_EQ(played(pipeline(pp, 2, m), 16).makespan, ideal + bubble / 2);
      Strategy gpipe = pipeline(pp, 1, m);
      gpipe.schedule = Schedule::gpipe;
      EXPECT_EQ(played(gpipe, 16).makespan, ideal + bubble);
    }
  }
}

TEST(ToyReplay, ProgramOrderIsALegalOrder) {
  for (const std::int64_t vpp : {1, 2}) {
    const Played streams = played(pipeline(4, vpp, 8), 8);
    const Played order = played(pipeline(4, vpp, 8), 8, true);
    EXPECT_EQ(order.busy, streams.busy);
    EXPECT_GE(order.makespan, streams.makespan);
  }
}

// One second for each gather of weights, one for qkv and two for fc1, forwards; backward free.
TEST(ToyReplay, WeightsAreGatheredWhileTheLayerBeforeComputes) {
  Strategy s;
  s.dp = 2, s.global_batch = 2, s.seq_len = 8, s.zero = Zero::weights;
  Recipe recipe;
  recipe.reshard_after_forward = false;
  const auto makespan = [&] {
    const Trained t = trained(small(4), s, recipe);
    const auto price = [&](const Instruction& instruction) {
      if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
        return t.program.comms[collective->comm].op == CollectiveOp::all_gather ? 1.0 : 0.0;
      }
      const auto* compute = std::get_if<Compute>(&instruction.what);
      if (!compute) return 0.0;
      const std::string& name = t.program.kernels[compute->kernel].name;
      return name == "qkv" ? 1.0 : name == "fc1" ? 2.0 : 0.0;
    };
    return ToyReplay(t.program, price).play().makespan;
  };
  // The embedding's and the first layer's gather are seen, the other four (the head's too) hide.
  EXPECT_EQ(makespan(), 2 + 4 * 3);
  recipe.overlap_data = false;
  EXPECT_EQ(makespan(), 6 + 4 * 3);
}

TEST(ToyReplay, GradientsTravelWhileTheLayersBelowCompute) {
  Strategy s;
  s.dp = 2, s.global_batch = 4, s.seq_len = 8;
  Recipe recipe;
  const auto makespan = [&] {
    const Trained t = trained(small(4), s, recipe);
    const auto layers = layers_only(t.program);
    const auto price = [&](const Instruction& instruction) {
      return std::holds_alternative<Collective>(instruction.what) ? 1.0 : layers(instruction);
    };
    return ToyReplay(t.program, price).play().makespan;
  };
  // Two micro-batches of four layers; the last layer's and the embedding's reduction are seen.
  EXPECT_EQ(makespan(), 2 * 4 * 3 + 2);
  recipe.overlap_data = false;
  EXPECT_EQ(makespan(), 2 * 4 * 3 + 6);
}

}  // namespace
}  // namespace orrery

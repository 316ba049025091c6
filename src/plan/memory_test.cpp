// Memory of lowered Programs against what the papers print.
#include <gtest/gtest.h>

#include "plan/test_walk.h"

namespace orrery {
namespace {

// GPT-3's shape, as Korthikanti et al. (arXiv 2205.05198, table 3) train it: dropout, no flash
// attention; biases left out here.
Architecture gpt3() {
  Architecture a = gpt_like("gpt3", 96, 12288, 96, 51200, 2048);
  a.tied_embeddings = false;
  a.qkv_bias = a.output_bias = a.mlp_bias = a.norm_bias = false;
  return a;
}

Strategy gpt3_layout() {
  Strategy s;
  s.tp = 8, s.pp = 8, s.dp = 1, s.seq_len = 2048, s.global_batch = 64;
  return s;
}

constexpr double s = 2048, h = 12288, a = 96, L = 96, tp = 8, p = 8, b = 1;
constexpr double sbh = s * b * h;

// Activations of the first stage's layers, in units of one layer: without the embedding's mask and
// what of a layer is alive while it computes.
double layers_held(const Strategy& strategy) {
  const Trained trained_model = trained(gpt3(), strategy, {}, false, true);
  return memory_of(*trained_model.program.classes.begin()).highest_activations;
}

TEST(Memory, OfALayerIsAsKorthikantiCountsIt) {
  struct Case {
    bool sequence_parallel;
    Recompute recompute;
    double per_layer;
  };
  const double scores = 5 * a * s / h;
  const Case cases[] = {
      {false, Recompute::none, sbh * (10 + 24 / tp + scores / tp)},  // equation 2
      {true, Recompute::none, sbh * (34 / tp + scores / tp)},        // equation 4
      {false, Recompute::selective, sbh * (10 + 24 / tp)},
      {true, Recompute::selective, sbh * 34 / tp},  // equation 6
      {false, Recompute::full, sbh * 2},
      {true, Recompute::full, sbh * 2 / tp},
  };
  for (const Case& c : cases) {
    Strategy strategy = gpt3_layout();
    strategy.sequence_parallel = c.sequence_parallel;
    strategy.recompute = c.recompute;
    // Two depths apart: what is no layer's cancels out. p micro-batches are in flight.
    Architecture deep = gpt3(), shallow = gpt3();
    deep.layers = 96, shallow.layers = 48;
    const auto held = [&](const Architecture& model) {
      const Trained trained_model = trained(model, strategy, {}, false, true);
      return memory_of(*trained_model.program.classes.begin()).highest_activations;
    };
    const double per_layer = (held(deep) - held(shallow)) / (48 / p) / p;
    EXPECT_NEAR(per_layer / c.per_layer, 1, 1e-9) << static_cast<int>(c.recompute);
  }
}

TEST(Memory, TheFirstStageHoldsAsMuchAsAllLayersOfOneMicroBatch) {
  Strategy strategy = gpt3_layout();
  strategy.sequence_parallel = true;
  strategy.recompute = Recompute::selective;
  // s b h L 34 / tp, p stages with L / p layers each (equation 6 and section 4.3), and the mask of
  // the embedding's dropout, s b h p / tp (section 4.3).
  EXPECT_NEAR(layers_held(strategy) / (sbh * L * 34 / tp + sbh * p / tp), 1, 5e-3);
  strategy.vpp = 3;
  strategy.schedule = Schedule::interleaved;
  const double factor = 1 + (p - 1) / (p * 3);
  EXPECT_NEAR(layers_held(strategy) / (sbh * L * 34 / tp * factor + sbh * p / tp), 1, 1e-2);
}

TEST(Memory, StateIs18BytesAParameter) {
  const Strategy strategy = gpt3_layout();
  const Trained trained_model = trained(gpt3(), strategy);
  const RankClass& middle = trained_model.program.classes[ClassId(3)];
  const Memory memory = memory_of(middle);
  const double parameters = 12 * L * h * h / (tp * p) + 2 * h * L / p;  // and norms
  EXPECT_NEAR(memory.at_peak(MemoryTerm::weights), 2 * parameters, 1);
  EXPECT_NEAR(memory.at_peak(MemoryTerm::gradients), 4 * parameters, 1);
  EXPECT_NEAR(memory.at_peak(MemoryTerm::optimizer), 12 * parameters, 1);
}

TEST(Memory, ZeroDividesOptimizerThenGradientsThenWeights) {
  const auto peak = [](Zero zero) {
    Strategy strategy;
    strategy.dp = 4, strategy.global_batch = 8, strategy.seq_len = 128, strategy.zero = zero;
    const Trained t = trained(llama_like("x", {8, 64, 8, 8, 8, 256, 512}), strategy);
    return memory_of(*t.program.classes.begin());
  };
  const Memory none = peak(Zero::none);
  const auto ratio = [&](Zero zero, MemoryTerm term) {
    return none.at_peak(term) / peak(zero).at_peak(term);
  };
  using T = MemoryTerm;
  EXPECT_NEAR(ratio(Zero::optimizer, T::optimizer), 4, 1e-9);
  EXPECT_NEAR(ratio(Zero::optimizer, T::gradients), 1, 1e-9);
  EXPECT_NEAR(ratio(Zero::gradients, T::gradients), 4, 1e-9);
  EXPECT_NEAR(ratio(Zero::gradients, T::weights), 1, 1e-9);
  EXPECT_NEAR(ratio(Zero::weights, T::weights), 4, 1e-9);
}

TEST(Memory, LogitsTake4Or10Bytes) {
  for (const bool fused : {true, false}) {
    Strategy strategy;
    strategy.seq_len = 256;
    Recipe recipe;
    recipe.logit_bytes = fused ? 4 : 10;
    const Trained t = trained(llama_like("x", {1, 64, 8, 8, 8, 256, 50000}), strategy, recipe);
    const Memory memory = memory_of(*t.program.classes.begin());
    EXPECT_EQ(memory.at_peak(MemoryTerm::logits), (fused ? 4.0 : 10.0) * 256 * 50000);
    // The fp32 gradient of the output matrix stands beside them.
    EXPECT_NEAR(memory.at_peak(MemoryTerm::workspace), 4.0 * 64 * 50000, 3.0 * 256 * 64);
  }
}

TEST(Memory, SelectiveOperatorsKeepEverySecondProduct) {
  // A token and layer: the input and fc2 (2h each), q, v and attention's output, half of a gated
  // fc1 (2f), attention's statistics.
  Strategy strategy;
  strategy.seq_len = 256;
  strategy.recompute = Recompute::operators;
  const auto held = [&](std::int64_t layers) {
    const Trained t = trained(llama_like("x", {layers, 512, 8, 2, 64, 2048, 1000}), strategy);
    return memory_of(*t.program.classes.begin()).highest_activations;
  };
  const double expected = 4 * 512 + 2 * (512 + 128 + 512) + 2 * 2048 + 4 * 8;
  EXPECT_NEAR((held(9) - held(8)) / 256, expected, 1e-6);
}

TEST(Memory, CheckpointsCanBeDivided) {
  Strategy strategy;
  strategy.tp = 4, strategy.seq_len = 256, strategy.recompute = Recompute::full;
  const auto held = [&](std::int64_t layers, bool divided) {
    Recipe recipe;
    recipe.shards_checkpoints = divided;
    const Trained t =
        trained(llama_like("x", {layers, 512, 8, 8, 64, 2048, 1000}), strategy, recipe);
    return memory_of(*t.program.classes.begin()).highest_activations;
  };
  EXPECT_EQ(held(9, false) - held(8, false), 2.0 * 512 * 256);
  EXPECT_EQ(held(9, true) - held(8, true), 2.0 * 512 * 256 / 4);
}

TEST(Memory, GatheredWeightsAreTwoLayers) {
  Strategy strategy;
  strategy.dp = 8, strategy.global_batch = 8, strategy.seq_len = 16, strategy.zero = Zero::weights;
  const Trained t = trained(llama_like("x", {8, 512, 8, 8, 64, 2048, 100}), strategy);
  const Memory memory = memory_of(*t.program.classes.begin());
  const double layer = 4 * 512.0 * 512 + 3 * 512 * 2048 + 2 * 512;
  // Two layers unsharded, and the gradients of one.
  EXPECT_NEAR(memory.at_peak(MemoryTerm::communication), layer * (2 * 2 + 4), 1);
}

}  // namespace
}  // namespace orrery

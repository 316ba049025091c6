#include "plan/lower.h"

#include <gtest/gtest.h>

#include "plan/test_walk.h"

namespace orrery {
namespace {

// Small, and divisible by everything that the strategies below divide by.
Architecture small(std::int64_t layers = 8) {
  return llama_like("small", {layers, 64, 8, 8, 8, 256, 512});
}

Strategy base() {
  Strategy s;
  s.micro_batch = 2, s.seq_len = 64;
  return s;
}

struct Layout {
  std::int64_t tp, pp, vpp, dp, cp;
  bool sequence_parallel;
  Zero zero;
  Recompute recompute;
};

Strategy of(const Layout& l, std::int64_t micro_batches = 0) {
  Strategy s = base();
  s.tp = l.tp, s.pp = l.pp, s.vpp = l.vpp, s.dp = l.dp, s.cp = l.cp;
  s.sequence_parallel = l.sequence_parallel;
  s.zero = l.zero;
  s.recompute = l.recompute;
  if (l.vpp > 1) s.schedule = Schedule::interleaved;
  if (micro_batches == 0) micro_batches = l.pp == 5 ? 10 : 8;
  s.global_batch = micro_batches * s.dp * s.micro_batch;
  return s;
}

const std::vector<Layout> layouts = {
    {1, 1, 1, 1, 1, false, Zero::none, Recompute::none},
    {2, 1, 1, 2, 1, false, Zero::none, Recompute::none},
    {2, 2, 1, 2, 1, true, Zero::optimizer, Recompute::none},
    {4, 2, 2, 1, 1, true, Zero::none, Recompute::selective},
    {1, 4, 1, 2, 2, false, Zero::optimizer, Recompute::full},
    {2, 2, 2, 2, 2, true, Zero::optimizer, Recompute::full},
    {1, 1, 1, 8, 1, false, Zero::weights, Recompute::operators},
    {2, 1, 1, 4, 1, true, Zero::weights, Recompute::full},
    {1, 2, 1, 4, 1, false, Zero::gradients, Recompute::none},
    {2, 4, 1, 2, 1, true, Zero::weights, Recompute::none},
    {1, 5, 2, 1, 1, false, Zero::none, Recompute::none},  // ends that hold no layer
};

double model_flop(const OpGraph& graph) {
  double sum = 0;
  for (const LayerId id : graph.layers.ids()) {
    const double times = id == graph.body.front().layer ? static_cast<double>(graph.depth()) : 1;
    for (const Op& op : graph.layers[id].ops) {
      sum += times * model_flop_of(op.kind, op.pass, op.shape).value();
    }
  }
  return sum;
}

double forward_flop(const Layer& layer) {
  double sum = 0;
  for (const OpId id : layer.forward) {
    const Op& op = layer.ops[id];
    sum += flop_of(op.kind, op.pass, op.shape).value();
  }
  return sum;
}

// Over all ranks of the job.
Totals summed(const Program& program) {
  Totals sum;
  for (const RankClass& ranks : program.classes) {
    const Totals part = totals(program, ranks);
    sum.flop += part.flop * static_cast<double>(ranks.ranks);
    sum.model_flop += part.model_flop * static_cast<double>(ranks.ranks);
  }
  return sum;
}

TEST(LayerSplit, IsEvenOrLeavesPlacesForEmbeddingAndHead) {
  using Split = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(layer_split(8, 4, 1), (Split{{2}, {2}, {2}, {2}}));
  EXPECT_EQ(layer_split(8, 2, 2), (Split{{2, 2}, {2, 2}}));
  EXPECT_EQ(layer_split(6, 4, 1), (Split{{1}, {2}, {2}, {1}}));
  EXPECT_EQ(layer_split(14, 2, 4), (Split{{1, 2, 2, 2}, {2, 2, 2, 1}}));
  const Split llama_405b = layer_split(126, 16, 8);
  EXPECT_EQ(llama_405b.front().front(), 0);  // one place a chunk: the embedding's own
  EXPECT_EQ(llama_405b.back().back(), 0);
  EXPECT_EQ(llama_405b[3][5], 1);
  EXPECT_EQ(layer_split(7, 2, 1), (Split{{4}, {3}}));
}

TEST(Lower, ModelFlopOfAllRanksIsTheGraphs) {
  for (const bool flash : {true, false}) {
    for (const Layout& layout : layouts) {
      const Strategy s = of(layout);
      const Trained t = trained(small(), s, {}, flash);
      const double expected = model_flop(t.graph) * static_cast<double>(s.micro_batches() * s.dp);
      EXPECT_NEAR(summed(t.program).model_flop.value() / expected, 1, 1e-12)
          << layout.tp << layout.pp << layout.cp << static_cast<int>(layout.recompute);
    }
  }
}

TEST(Lower, FullRecomputeAddsOneForwardOfTheDecoders) {
  for (Layout layout : layouts) {
    layout.recompute = Recompute::none;
    const Trained none = trained(small(), of(layout));
    layout.recompute = Recompute::full;
    const Strategy s = of(layout);
    const Trained full = trained(small(), s);
    const double added = (summed(full.program).flop - summed(none.program).flop).value();
    const double forward = forward_flop(full.graph.layers[full.graph.body.front().layer]) *
                           static_cast<double>(full.graph.depth() * s.micro_batches() * s.dp);
    EXPECT_NEAR(added / forward, 1, 1e-9);
  }
}

TEST(Lower, ARecomputedShareOfTheLayersIsRoundedUp) {
  Strategy s = of({1, 2, 1, 1, 1, false, Zero::none, Recompute::none});
  const double none = summed(trained(small(), s).program).flop.value();
  s.recompute = Recompute::full;
  s.recompute_share = 0.3;  // of four layers a stage: two
  const Trained t = trained(small(), s);
  const double forward = forward_flop(t.graph.layers[t.graph.body.front().layer]);
  EXPECT_NEAR((summed(t.program).flop.value() - none) / (forward * 4 * 8), 1, 1e-9);
}

TEST(Lower, SelectiveRunsTheUnfusedAttentionCoreAgain) {
  Strategy s = of({1, 1, 1, 1, 1, false, Zero::none, Recompute::none});
  const auto flop = [&](Recompute recompute, bool flash) {
    s.recompute = recompute;
    return summed(trained(small(), s, {}, flash).program).flop.value();
  };
  EXPECT_EQ(flop(Recompute::selective, true), flop(Recompute::none, true));
  // Two products of 2 s^2 h b in each layer (arXiv 2205.05198, appendix A), 8 micro-batches.
  const double core = 2 * 2.0 * 64 * 64 * 64 * 2;
  EXPECT_NEAR(flop(Recompute::selective, false) - flop(Recompute::none, false), core * 8 * 8, 1);
}

TEST(Lower, SizeDoesNotGrowWithLayersOrMicroBatches) {
  for (const Layout& layout : layouts) {
    const auto size = [&](std::int64_t layers, std::int64_t micro_batches) {
      return instruction_count(trained(small(layers), of(layout, micro_batches)).program);
    };
    if (layout.pp == 5) continue;  // only 8 layers and a multiple of 5 micro-batches fit
    EXPECT_EQ(size(8, 64), size(80, 64));
    EXPECT_EQ(size(8, 64), size(8, 4096));
  }
}

TEST(Lower, WhatIsAllocatedIsFreedButTheState) {
  for (const bool dropout : {false, true}) {
    for (const Architecture& model : one_of_each()) {
      for (Layout layout : layouts) {
        layout.tp = layout.sequence_parallel ? 2 : 1;  // every architecture divides by it
        Architecture few = model;
        few.layers = 8, few.heads = few.kv_heads = 4;
        const Trained t = trained(few, of(layout), {}, !dropout, dropout);
        for (const RankClass& ranks : t.program.classes) {
          const Memory memory = memory_of(ranks);
          EXPECT_FALSE(memory.negative) << model.name;
          for (const BufferId id : ranks.buffers.ids()) {
            const Buffer& buffer = ranks.buffers[id];
            const bool state = buffer.term == MemoryTerm::weights ||
                               buffer.term == MemoryTerm::gradients ||
                               buffer.term == MemoryTerm::optimizer;
            const auto left = memory.instances.find(id.index());
            if (left != memory.instances.end() && !state) {
              EXPECT_EQ(left->second, 0) << model.name << " " << buffer.name;
            }
          }
        }
      }
    }
  }
}

// So that what a Free pops is what the Program means: the older gradient goes before the newer
// comes, or the newer is written in its place.
TEST(Lower, OneGradientAtATimePassesBetweenLayers) {
  for (Architecture model : one_of_each()) {
    model.layers = 2;
    const Trained t = trained(model, of(layouts.front(), 1));
    const RankClass& ranks = *t.program.classes.begin();
    std::int64_t alive = 0;
    each_instruction(ranks, [&](const Instruction& instruction) {
      const auto* alloc = std::get_if<Alloc>(&instruction.what);
      const auto* free = std::get_if<Free>(&instruction.what);
      if (alloc && ranks.buffers[alloc->buffer].name == "hidden gradient") ++alive;
      if (free && ranks.buffers[free->buffer].name == "hidden gradient") --alive;
      EXPECT_LE(alive, 1) << model.name;
    });
  }
}

TEST(Lower, NarrowMatmulsMoveNarrowOperands) {
  Strategy s = of({2, 1, 1, 1, 1, true, Zero::none, Recompute::none}, 1);
  GraphOptions options;
  options.micro_batch = s.micro_batch, options.seq_len = s.seq_len;
  options.matrices = Precision::fp8;
  const OpGraph graph = training_graph(small(), options);
  const Program fp8 = lower(graph, s, {});
  const Trained bf16 = trained(small(), s);
  EXPECT_NEAR(summed(fp8).model_flop / summed(bf16.program).model_flop, 1, 1e-12);
  const auto gathered = [](const Program& program) {
    return volume(program, *program.classes.begin(), CollectiveOp::all_gather, GroupKind::tensor);
  };
  EXPECT_LT(gathered(fp8), gathered(bf16.program));
}

TEST(Lower, NeighboursSendWhatTheOthersReceive) {
  for (const Layout& layout : layouts) {
    const Trained t = trained(small(), of(layout));
    std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::vector<double>> sent, received;
    for (const ClassId id : t.program.classes.ids()) {
      each_instruction(t.program.classes[id], [&](const Instruction& instruction) {
        if (const auto* send = std::get_if<Send>(&instruction.what)) {
          sent[{id.index(), send->to.index(), send->channel}].push_back(send->size.value());
        }
        if (const auto* recv = std::get_if<Recv>(&instruction.what)) {
          received[{recv->from.index(), id.index(), recv->channel}].push_back(recv->size.value());
        }
      });
    }
    EXPECT_EQ(sent, received);
    EXPECT_EQ(sent.empty(), layout.pp == 1);
  }
}

// --- bytes on the wire -------------------------------------------------------------------------

TEST(Lower, TensorParallelismReducesTwiceForwardsAndTwiceBackwardsALayer) {
  Strategy s = of({4, 1, 1, 1, 1, false, Zero::none, Recompute::none}, 1);
  const auto launched = [&](std::int64_t layers, CollectiveOp op) {
    const Trained t = trained(small(layers), s);
    return launches(t.program, *t.program.classes.begin(), op, GroupKind::tensor);
  };
  const auto a_layer = [&](CollectiveOp op) { return launched(9, op) - launched(8, op); };
  EXPECT_EQ(a_layer(CollectiveOp::all_reduce), 4);
  EXPECT_EQ(a_layer(CollectiveOp::all_gather), 0);
  // Embedding, dx of the head, and three statistics of the loss.
  EXPECT_EQ(launched(8, CollectiveOp::all_reduce), 4 * 8 + 2 + 3);
  s.sequence_parallel = true;  // (arXiv 2205.05198, section 4.2.2): x is gathered again for dW
  EXPECT_EQ(a_layer(CollectiveOp::all_reduce), 0);
  EXPECT_EQ(a_layer(CollectiveOp::reduce_scatter), 4);
  EXPECT_EQ(a_layer(CollectiveOp::all_gather), 6);
}

TEST(Lower, TensorParallelVolumeIsTheHiddenStates) {
  const Strategy s = of({4, 1, 1, 1, 1, false, Zero::none, Recompute::none}, 1);
  const auto bytes = [&](std::int64_t layers) {
    const Trained t = trained(small(layers), s);
    return volume(t.program, *t.program.classes.begin(), CollectiveOp::all_reduce,
                  GroupKind::tensor);
  };
  EXPECT_EQ(bytes(9) - bytes(8), 4 * 2.0 * 64 * 2 * 64);  // 4 times 2 bytes x s b h
}

double layer_parameters(const OpGraph& graph) {
  double sum = 0;
  for (const Tensor& tensor : graph.layers[graph.body.front().layer].tensors) {
    if (tensor.role == TensorRole::parameter) sum += static_cast<double>(tensor.elements);
  }
  return sum;
}

TEST(Lower, FsdpGathersTwiceAndScattersOnceAMicroBatch) {
  const Strategy s = of({1, 1, 1, 8, 1, false, Zero::weights, Recompute::none}, 4);
  Recipe recipe;
  const auto bytes = [&](std::int64_t layers, CollectiveOp op) {
    const Trained t = trained(small(layers), s, recipe);
    return volume(t.program, *t.program.classes.begin(), op, GroupKind::shard) /
           layer_parameters(t.graph);
  };
  const auto a_layer = [&](CollectiveOp op) { return bytes(9, op) - bytes(8, op); };
  EXPECT_NEAR(a_layer(CollectiveOp::all_gather), 4 * 2 * recipe.gather_bytes, 1e-9);
  EXPECT_NEAR(a_layer(CollectiveOp::reduce_scatter), 4 * recipe.reduce_bytes, 1e-9);
  recipe.reshard_after_forward = false;
  EXPECT_NEAR(a_layer(CollectiveOp::all_gather), 4 * recipe.gather_bytes, 1e-9);
}

TEST(Lower, OtherwiseGradientsTravelOnceAStep) {
  for (const bool overlap : {true, false}) {
    Recipe recipe;
    recipe.overlap_data = overlap;
    for (const Zero zero : {Zero::none, Zero::optimizer}) {
      const Strategy s = of({1, 1, 1, 4, 1, false, zero, Recompute::none}, 8);
      const Trained t = trained(small(), s, recipe);
      const RankClass& ranks = *t.program.classes.begin();
      const double state = 8 * layer_parameters(t.graph) + 2 * 512 * 64 + 64;
      const bool sharded = zero == Zero::optimizer;
      EXPECT_NEAR(volume(t.program, ranks, CollectiveOp::all_reduce, GroupKind::data),
                  sharded ? 0 : state * recipe.reduce_bytes, 1);
      EXPECT_NEAR(volume(t.program, ranks, CollectiveOp::reduce_scatter, GroupKind::shard),
                  sharded ? state * recipe.reduce_bytes : 0, 1);
      EXPECT_NEAR(volume(t.program, ranks, CollectiveOp::all_gather, GroupKind::shard),
                  sharded ? state * recipe.gather_bytes : 0, 1);
    }
  }
}

TEST(Lower, ShardsWithReplicasAreSummedOverThem) {
  Strategy s = of({1, 1, 1, 8, 1, false, Zero::optimizer, Recompute::none});
  s.shard_ranks = 2;
  const Trained t = trained(small(), s);
  const RankClass& ranks = *t.program.classes.begin();
  const double scattered = volume(t.program, ranks, CollectiveOp::reduce_scatter, GroupKind::shard);
  EXPECT_GT(scattered, 0);
  EXPECT_NEAR(volume(t.program, ranks, CollectiveOp::all_reduce, GroupKind::replica), scattered / 2,
              1);
}

TEST(Lower, APipelineThatKeepsGatheredWeightsGathersAndReducesOnceAStep) {
  const Strategy s = of({1, 2, 1, 4, 1, false, Zero::weights, Recompute::none}, 8);
  Recipe recipe;
  recipe.reshard_after_forward = false;
  const Trained t = trained(small(), s, recipe);
  const RankClass& ranks = *t.program.classes.begin();
  const double state = 4 * layer_parameters(t.graph) + 512 * 64;
  EXPECT_NEAR(volume(t.program, ranks, CollectiveOp::all_gather, GroupKind::shard), 2 * state, 1);
  EXPECT_NEAR(volume(t.program, ranks, CollectiveOp::reduce_scatter, GroupKind::shard), 4 * state,
              1);
  EXPECT_NEAR(memory_of(ranks).at_peak(MemoryTerm::weights), state * (2 + 2 / 4.0), 1);
}

TEST(Lower, SlicesBetweenStagesDivideWhatIsSentAndAddAGather) {
  const Strategy s = of({2, 2, 1, 1, 1, false, Zero::none, Recompute::none});
  Recipe recipe;
  const Trained whole = trained(small(), s, recipe);
  recipe.scatters_sends = true;
  const Trained sliced = trained(small(), s, recipe);
  const auto sent = [](const Trained& t) {
    return totals(t.program, *t.program.classes.begin()).point_to_point.value();
  };
  const auto gathered = [](const Trained& t) {
    return volume(t.program, *t.program.classes.begin(), CollectiveOp::all_gather,
                  GroupKind::tensor);
  };
  EXPECT_GT(sent(sliced), 0);
  EXPECT_EQ(sent(sliced), sent(whole) / 2);
  // The first stage receives as much gradient as it sends activations.
  EXPECT_EQ(gathered(sliced) - gathered(whole), sent(whole));
}

TEST(Lower, TiedEmbeddingsShareTheirGradientOverThePipeline) {
  Architecture tied = small();
  tied.tied_embeddings = true;
  const Strategy s = of({2, 4, 1, 1, 1, false, Zero::none, Recompute::none});
  const Trained t = trained(tied, s);
  for (const RankClass& ranks : t.program.classes) {
    const bool end = ranks.stage == 0 || ranks.stage == 3;
    EXPECT_EQ(volume(t.program, ranks, CollectiveOp::all_reduce, GroupKind::embedding),
              end ? 4.0 * 512 * 64 / 2 : 0);
  }
  // One stage holds one matrix, and head and embedding add to the same gradient.
  const Strategy one = of({1, 1, 1, 1, 1, false, Zero::none, Recompute::none});
  const Trained alone = trained(tied, one), untied = trained(small(), one);
  const auto weights = [](const Trained& x) {
    return memory_of(*x.program.classes.begin()).at_peak(MemoryTerm::weights);
  };
  EXPECT_EQ(weights(untied) - weights(alone), 2.0 * 512 * 64);
}

TEST(Lower, ContextRanksGatherKeysAndValues) {
  const Strategy s = of({2, 1, 1, 1, 2, false, Zero::none, Recompute::none}, 1);
  const Trained t = trained(small(), s);
  const RankClass& ranks = *t.program.classes.begin();
  const double keys_and_values = 2.0 * 2 * 64 * 64 / 2 * 2;  // K and V: b s h / tp, bf16
  EXPECT_EQ(volume(t.program, ranks, CollectiveOp::all_gather, GroupKind::context),
            8 * 2 * keys_and_values);
  EXPECT_EQ(volume(t.program, ranks, CollectiveOp::reduce_scatter, GroupKind::context),
            8 * keys_and_values);
}

TEST(Lower, EachRankUpdatesItsShare) {
  for (const Layout& layout : layouts) {
    const Strategy s = of(layout);
    const Trained t = trained(small(), s);
    double updated = 0, expected = 8 * layer_parameters(t.graph) + 2 * 512 * 64 + 64;
    for (const RankClass& ranks : t.program.classes) {
      each_instruction(ranks, [&](const Instruction& instruction) {
        const auto* update = std::get_if<Update>(&instruction.what);
        if (update) updated += static_cast<double>(update->parameters * ranks.ranks);
      });
    }
    // Norms are held by every tensor rank.
    const double norms = (8 * 2 + 1) * 64.0 * static_cast<double>(s.tp - 1);
    if (s.zero == Zero::none) {
      expected = (expected + norms) * static_cast<double>(s.dp * s.cp);
    } else {
      expected += norms;
    }
    EXPECT_NEAR(updated / expected, 1, 1e-3);
  }
}

}  // namespace
}  // namespace orrery

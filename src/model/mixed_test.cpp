// Graphs of layers of several kinds: experts, latent attention, Mamba, windows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/build.h"
#include "model/count.h"
#include "model/test_models.h"

namespace orrery {
namespace {

using testing::ElementsAre;

const Op& op(const Layer& layer, const std::string& name) {
  for (const Op& op : layer.ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range("no operator " + name);
}

OpId id(const Layer& layer, const std::string& name) {
  for (const OpId id : layer.ops.ids()) {
    if (layer.ops[id].name == name) return id;
  }
  throw std::out_of_range("no operator " + name);
}

std::vector<std::string> names(const Layer& layer, const std::vector<OpId>& ops) {
  std::vector<std::string> found;
  for (const OpId id : ops) found.push_back(layer.ops[id].name);
  return found;
}

const Layer& last_of_body(const OpGraph& graph) { return graph.layers[graph.body.back().layer]; }

Bytes saved_bytes(const Layer& layer) {
  Bytes sum;
  for (const TensorId id : layer.saved()) {
    const Tensor& tensor = layer.tensors[id];
    sum += static_cast<double>(tensor.elements) * element_size(tensor.dtype);
  }
  return sum;
}

double forward_flop(const Layer& layer) {
  Flop sum;
  for (const OpId id : layer.forward) sum += work_of(layer, id).flop;
  return sum.value();
}

// --- runs --------------------------------------------------------------------------------------

TEST(Runs, EqualKindsAreOneLayer) {
  const OpGraph graph = training_graph(gpt_oss_20b(), {.micro_batch = 1, .seq_len = 4096});
  EXPECT_EQ(graph.layers.size(), 4);  // embedding, local, global, head
  EXPECT_EQ(graph.body.size(), 24);
  EXPECT_EQ(graph.depth(), 24);
  EXPECT_EQ(graph.layers[graph.body[0].layer].name, "local");
  EXPECT_EQ(graph.body[0].layer, graph.body[2].layer);
  EXPECT_NE(graph.body[0].layer, graph.body[1].layer);
}

TEST(Runs, KindsDifferInWindowAndPositions) {
  const OpGraph graph = training_graph(llama_4_scout(), {.micro_batch = 1, .seq_len = 32768});
  const Layer& local = graph.layers[graph.body[0].layer];
  const Layer& global = graph.layers[graph.body[1].layer];
  EXPECT_THAT(names(local, local.forward), testing::Contains("rotary"));
  EXPECT_THAT(names(global, global.forward), testing::Not(testing::Contains("rotary")));
  const double s = 32768, block = 8192;
  const auto pairs = [](const Layer& layer) {
    return attended_pairs(std::get<Attention>(op(layer, "attention").shape));
  };
  EXPECT_EQ(pairs(global), s * s / 2);
  EXPECT_EQ(pairs(local), s / block * block * block / 2);
}

TEST(Runs, PackedTextsDoNotSeeEachOther) {
  const GraphOptions packed = {.micro_batch = 1, .seq_len = 4096, .documents = 8};
  const OpGraph graph = training_graph(llama_3_1_8b(), packed);
  EXPECT_EQ(attended_pairs(std::get<Attention>(op(last_of_body(graph), "attention").shape)),
            8 * 512.0 * 512 / 2);
  GraphOptions unfused = packed;
  unfused.flash_attention = false;  // computes every pair and masks
  const OpGraph whole = training_graph(llama_3_1_8b(), unfused);
  EXPECT_EQ(attended_pairs(std::get<Attention>(op(last_of_body(whole), "scores").shape)),
            4096.0 * 4096);
}

// Gemma 2 has norms before and after each half.
TEST(Runs, FourNormsStandAroundBothHalves) {
  Architecture a = gemma_2b();
  a.norms_per_layer = 4;
  const OpGraph graph = training_graph(a, {.micro_batch = 1, .seq_len = 64});
  const Layer& layer = last_of_body(graph);
  EXPECT_THAT(names(layer, layer.forward),
              ElementsAre("norm1", "qkv", "rotary", "attention", "proj", "post_norm1", "residual1",
                          "norm2", "fc1", "activation", "fc2", "post_norm2", "residual2"));
}

// --- mixture of experts ------------------------------------------------------------------------

class Mixtral : public testing::Test {
 protected:
  Mixtral() : graph_(training_graph(mixtral_8x7b(), {.micro_batch = 2, .seq_len = 1024})) {}
  const Layer& layer() const { return last_of_body(graph_); }
  const Tensor& written(const std::string& name) const {
    return layer().tensors[op(layer(), name).writes[0]];
  }

  OpGraph graph_;
  const double t_ = 2048, h_ = 4096, f_ = 14336;
};

TEST_F(Mixtral, ListsItsOperators) {
  EXPECT_THAT(names(layer(), layer().forward),
              ElementsAre("norm1", "qkv", "rotary", "attention", "proj", "residual1", "norm2",
                          "router", "routing", "dispatch", "fc1.experts", "activation.experts",
                          "fc2.experts", "combine", "residual2"));
}

TEST_F(Mixtral, EachTokenPassesThroughTopKExperts) {
  const double attention = 2 * t_ * (h_ * (h_ + 2 * 1024) + h_ * h_) + 2 * 4 * h_ * 1024 * 1024 / 2;
  const double experts = 2 * t_ * 2 * 3 * h_ * f_, router = 2 * t_ * h_ * 8;
  EXPECT_DOUBLE_EQ(forward_flop(layer()), attention + experts + router);
}

TEST_F(Mixtral, EveryExpertsWeightsAreRead) {
  const Work fc1 = work_of(layer(), id(layer(), "fc1.experts"));
  EXPECT_EQ(fc1.read, Bytes(2 * (2 * t_ * h_ + 8 * h_ * 2 * f_)));
  EXPECT_EQ(fc1.written, Bytes(2 * 2 * t_ * 2 * f_));
  const Work wgrad = work_of(layer(), id(layer(), "fc1.experts.wgrad"));
  EXPECT_EQ(wgrad.flop, fc1.flop);
  EXPECT_EQ(wgrad.written, Bytes(2 * 8 * h_ * 2 * f_));
}

TEST_F(Mixtral, DividesAsMegatronDoes) {
  EXPECT_EQ(op(layer(), "fc1.experts").parallel, Parallel::expert_columns);
  EXPECT_EQ(op(layer(), "fc2.experts").parallel, Parallel::expert_rows);
  EXPECT_EQ(op(layer(), "router").parallel, Parallel::tokens);
  EXPECT_EQ(written("dispatch").split, Split::routed);
  EXPECT_EQ(written("fc1.experts").split, Split::routed_features);
  EXPECT_EQ(written("fc2.experts").split, Split::routed);
  EXPECT_EQ(written("combine").split, Split::sequence);
  EXPECT_EQ(layer().tensors[op(layer(), "fc1.experts").reads[1]].split, Split::experts);
  EXPECT_EQ(layer().tensors[op(layer(), "router").reads[1]].split, Split::none);
}

// What attention and the norms keep, as of a dense layer; two copies a token, each with the
// experts' input, both halves of the gated product and the activation; a weight each.
TEST_F(Mixtral, SavesThreeTensorsACopy) {
  const double dense = 8 * h_ + 2 * (2 * 32 + 2 * 8) * 128 + 4 * 32;
  EXPECT_EQ(saved_bytes(layer()), Bytes(t_ * (dense + 2 * (2 * h_ + 6 * f_ + 4))));
}

TEST_F(Mixtral, TheFullestRankHasMoreCopies) {
  const OpGraph skewed =
      training_graph(mixtral_8x7b(), {.micro_batch = 2, .seq_len = 1024, .expert_load = 1.5});
  const Layer& loaded = last_of_body(skewed);
  for (const char* name : {"fc1.experts", "fc2.experts.dgrad", "fc1.experts.wgrad"}) {
    EXPECT_EQ(work_of(loaded, id(loaded, name)).flop,
              1.5 * work_of(layer(), id(layer(), name)).flop);
  }
  EXPECT_EQ(saved_bytes(loaded) - saved_bytes(layer()), Bytes(t_ * (2 * h_ + 6 * f_)));
}

TEST(Experts, SharedOnesSeeEveryTokenBehindTheirGate) {
  const OpGraph graph = training_graph(qwen1_5_moe(), {.micro_batch = 1, .seq_len = 64});
  const Layer& layer = last_of_body(graph);
  const std::vector<std::string> ops = names(layer, layer.forward);
  const auto combine = std::find(ops.begin(), ops.end(), "combine");
  EXPECT_THAT(std::vector<std::string>(combine, ops.end()),
              ElementsAre("combine", "fc1.shared", "activation.shared", "fc2.shared", "gate.shared",
                          "gated.shared", "sum.shared", "residual2"));
  EXPECT_EQ(op(layer, "fc1.shared").parallel, Parallel::columns);
  EXPECT_EQ(std::get<Matmul>(op(layer, "fc1.shared").shape).m, 64);
}

TEST(Experts, EightBitCopiesAreCastOnce) {
  const OpGraph graph =
      training_graph(mixtral_8x7b(), {.micro_batch = 1, .seq_len = 64, .matrices = Precision::fp8});
  const Layer& layer = last_of_body(graph);
  const Op& cast = op(layer, "fc1.experts.cast");
  EXPECT_EQ(cast.parallel, Parallel::routed);
  EXPECT_EQ(std::get<Elementwise>(cast.shape).rows, 128);
  EXPECT_EQ(op(layer, "fc1.experts").precision, Precision::fp8);
  EXPECT_EQ(op(layer, "router").precision, Precision::bf16);
  EXPECT_EQ(op(layer, "fc2.experts.dgrad.cast").parallel, Parallel::routed);
}

// --- latent attention --------------------------------------------------------------------------

class DeepSeek : public testing::Test {
 protected:
  DeepSeek() : graph_(training_graph(deepseek_v3(), {.micro_batch = 1, .seq_len = 4096})) {}
  const Layer& layer() const { return last_of_body(graph_); }

  OpGraph graph_;
  const double t_ = 4096, h_ = 7168;
};

TEST_F(DeepSeek, ListsItsOperators) {
  const std::vector<std::string> ops = names(layer(), layer().forward);
  EXPECT_THAT(std::vector<std::string>(ops.begin(), ops.begin() + 10),
              ElementsAre("norm1", "q_down", "q_norm", "q_up", "kv_down", "kv_norm", "kv_up",
                          "rotary", "attention", "proj"));
  EXPECT_EQ(op(layer(), "q_down").parallel, Parallel::tokens);
  EXPECT_EQ(op(layer(), "q_up").parallel, Parallel::columns);
  EXPECT_EQ(op(layer(), "kv_up").parallel, Parallel::columns);
}

// DeepSeek-V2 (arXiv 2405.04434) section 2.1.2, with V3's sizes: 1536 and 512 wide latents, heads
// of 128 + 64, values of 128; 8 of 256 experts and a shared one, 2048 wide.
TEST_F(DeepSeek, ALayersWorkFollowsItsPaper) {
  const double a = 128, latent = h_ * 1536 + 1536 * a * 192 + h_ * 576 + 512 * a * 256;
  const double matrices = latent + a * 128 * h_ + h_ * 256 + 9 * 3 * h_ * 2048;
  const double pairs = t_ * t_ / 2;
  EXPECT_DOUBLE_EQ(forward_flop(layer()), 2 * t_ * matrices + 2 * pairs * a * (192 + 128));
}

// The gradient of a fused kernel repeats q k^T, which is wider than p v.
TEST_F(DeepSeek, ScoresAreWiderThanValues) {
  const double pairs = t_ * t_ / 2, a = 128;
  EXPECT_EQ(work_of(layer(), id(layer(), "attention.dgrad")).flop,
            Flop(2 * pairs * a * (2 * (192 + 128) + 192)));
}

// Latents before and after their norms, queries and keys after the rotation, values and outputs.
// Megatron keeps the shared rotated keys, 2 x 64 bytes, with the latent that they are a slice of.
TEST_F(DeepSeek, SavesLatentsAndHeads) {
  const double a = 128, latents = 2 * 2 * (1536 + 512), heads = 2 * a * (192 + 192 + 128 + 128);
  const double experts = 8 * (2 * h_ + 6 * 2048 + 4) + 6 * 2048;
  EXPECT_EQ(saved_bytes(layer()), Bytes(t_ * (8 * h_ + latents + heads + 4 * a + experts)));
}

TEST(LatentAttention, MayHaveQueriesOfFullRank) {
  const OpGraph graph = training_graph(deepseek_v2_lite(), {.micro_batch = 1, .seq_len = 64});
  const Layer& layer = last_of_body(graph);
  const Matmul q = std::get<Matmul>(op(layer, "q").shape);
  EXPECT_EQ(q.k, 2048);
  EXPECT_EQ(q.n, 16 * 192);
  EXPECT_EQ(layer.tensors[op(layer, "attention").writes[0]].elements, 64 * 16 * 128);
}

// --- state spaces ------------------------------------------------------------------------------

TEST(StateSpace, MambaHasOneNormAndNoFeedForward) {
  const OpGraph graph = training_graph(mamba_2_8b(), {.micro_batch = 1, .seq_len = 64});
  const Layer& layer = last_of_body(graph);
  EXPECT_THAT(names(layer, layer.forward),
              ElementsAre("norm1", "in_proj", "convolution", "x_proj", "dt_proj", "scan", "gate",
                          "out_proj", "residual1"));
  EXPECT_EQ(op(layer, "x_proj").parallel, Parallel::rows);
  EXPECT_EQ(op(layer, "scan").parallel, Parallel::features);
}

TEST(StateSpace, Mamba2MakesAllFromOneProjection) {
  const OpGraph graph = training_graph(mamba2_2_7b(), {.micro_batch = 1, .seq_len = 64});
  const Layer& layer = last_of_body(graph);
  EXPECT_THAT(names(layer, layer.forward), ElementsAre("norm1", "in_proj", "convolution", "scan",
                                                       "gated_norm", "out_proj", "residual1"));
  EXPECT_EQ(std::get<Matmul>(op(layer, "in_proj").shape).n, 2 * 5120 + 2 * 128 + 80);
}

// --- against the counting conventions ----------------------------------------------------------

double model_flop_per_token(const OpGraph& graph) {
  Flop sum;
  for (const std::vector<Run>& runs : {graph.front, graph.body, graph.back}) {
    for (const Run& run : runs) {
      for (const Op& op : graph.layers[run.layer].ops) {
        sum += static_cast<double>(run.count) * model_flop_of(op.kind, op.pass, op.shape);
      }
    }
  }
  return sum.value() / static_cast<double>(graph.tokens());
}

TEST(Mixed, TheGraphsMatrixWorkIsTheConvention) {
  for (const Architecture& a : {mixtral_8x7b(), qwen3_30b_a3b(), qwen1_5_moe(), gpt_oss_20b(),
                                llama_4_scout(), deepseek_v2_lite(), deepseek_v3()}) {
    const std::int64_t s = 16384;
    const double formula = flop_per_token(a, s, FlopConvention::causal_attention).value();
    EXPECT_NEAR(model_flop_per_token(training_graph(a, {.micro_batch = 1, .seq_len = s})), formula,
                1e-12 * formula)
        << a.name;
  }
}

}  // namespace
}  // namespace orrery

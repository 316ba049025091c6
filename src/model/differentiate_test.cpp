#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/error.h"
#include "model/build.h"
#include "model/count.h"
#include "model/test_models.h"

namespace orrery {
namespace {

using testing::ElementsAre;

Bytes saved_bytes(const Layer& layer) {
  Bytes sum;
  for (const TensorId id : layer.saved()) {
    const Tensor& tensor = layer.tensors[id];
    sum += static_cast<double>(tensor.elements) * element_size(tensor.dtype);
  }
  return sum;
}

std::vector<std::string> saved_names(const Layer& layer) {
  std::vector<std::string> found;
  for (const TensorId id : layer.saved()) found.push_back(layer.tensors[id].name);
  return found;
}

Bytes saved_by_decoder(const Architecture& a, const GraphOptions& options) {
  const OpGraph graph = training_graph(a, options);
  return saved_bytes(graph.layers[graph.body.front().layer]);
}

// Korthikanti et al. 2022 eq. 1: s b h (34 + 5 a s / h) bytes a layer, 16 bit, with dropout.
TEST(Saved, UnfusedAttentionFollowsKorthikanti) {
  // Their table 3: 22B, 175B, 530B and 1T.
  const std::vector<Architecture> models = {
      gpt_like("22b", 48, 6144, 64, 51200, 2048), gpt_like("175b", 96, 12288, 96, 51200, 2048),
      gpt_like("530b", 105, 20480, 128, 51200, 2048), gpt_like("1t", 128, 25600, 160, 51200, 2048)};
  for (const Architecture& model : models) {
    const double s = 2048, b = 4, h = static_cast<double>(model.hidden);
    const double a = static_cast<double>(model.heads);
    const Bytes saved = saved_by_decoder(model, {.micro_batch = 4,
                                                 .seq_len = 2048,
                                                 .compute = Precision::fp16,
                                                 .matrices = Precision::fp16,
                                                 .flash_attention = false,
                                                 .dropout = true});
    EXPECT_EQ(saved, Bytes(s * b * h * 34 + 5 * a * s * s * b)) << model.name;
  }
}

// Section 4.3 of the same: the mask of the embedding's dropout, s b h; the final norm's input and
// the logits' input, 2 s b h each. They keep the logits in fp32, we in the compute precision.
TEST(Saved, OutsideTheLayersFollowsKorthikanti) {
  const OpGraph graph = training_graph(
      gpt3_175b(), {.micro_batch = 2, .seq_len = 2048, .flash_attention = false, .dropout = true});
  const double sb = 2 * 2048, h = 12288;
  EXPECT_EQ(saved_bytes(graph.layers[graph.embedding]), Bytes(sb * h));
  EXPECT_EQ(saved_bytes(graph.layers[graph.head]), Bytes(sb * (2 * h + 2 * h + 2 * 50257)));
}

// Two norms' inputs and outputs, q, k, v, o, the feed-forward's input and output of its
// activation, and 4 bytes a head for the statistics of the softmax.
TEST(Saved, FlashAttentionWithoutDropoutHasAClosedForm) {
  std::vector<Architecture> architectures = one_of_each();
  for (const Architecture& arch : architectures) {
    if (arch.parallel_block || arch.qk_norm) continue;
    const double h = static_cast<double>(arch.hidden), a = static_cast<double>(arch.heads);
    const double kv = static_cast<double>(arch.kv_heads), d = static_cast<double>(arch.head_dim);
    const double f = static_cast<double>(arch.ffn);
    const double mlp = gated(arch.activation) ? 6 * f : 4 * f;
    const double token = 8 * h + 2 * (2 * a + 2 * kv) * d + mlp + 4 * a;
    EXPECT_EQ(saved_by_decoder(arch, {.micro_batch = 3, .seq_len = 512}), Bytes(3 * 512 * token))
        << arch.name;
  }
}

TEST(Saved, AParallelBlockSavesWhatItReadsOnce) {
  const OpGraph graph = training_graph(phi_2(), {.micro_batch = 1, .seq_len = 64});
  EXPECT_THAT(saved_names(graph.layers[graph.body.front().layer]),
              ElementsAre("input", "norm1", "v", "rotary.q", "rotary.k", "attention",
                          "attention.statistics", "fc1", "activation"));
}

TEST(Saved, NormedQueriesAndKeysAddTheirInputs) {
  Architecture a = qwen3_8b();
  const GraphOptions options = {.micro_batch = 1, .seq_len = 64};
  const Bytes with = saved_by_decoder(a, options);
  a.qk_norm = false;
  EXPECT_EQ(with - saved_by_decoder(a, options), Bytes(64.0 * 2 * (32 + 8) * 128));
}

// The casts are kept instead of what they were made from, except where another gradient reads it:
// attention its output.
TEST(Saved, EightBitMatricesKeepTheirCasts) {
  const GraphOptions wide = {.micro_batch = 1, .seq_len = 64};
  GraphOptions narrow = wide;
  narrow.matrices = Precision::fp8;
  const double h = 4096, f = 14336;
  const double saving = 2 * h /*qkv, fc1*/ + f /*fc2*/ - 32 * 128 /*proj*/;
  EXPECT_EQ(saved_by_decoder(llama_3_1_8b(), wide) - saved_by_decoder(llama_3_1_8b(), narrow),
            Bytes(64 * saving));
}

TEST(Differentiate, ListsTheGradientsOfALlamaLayer) {
  const OpGraph graph = training_graph(llama_3_1_8b(), {.micro_batch = 1, .seq_len = 64});
  const Layer& layer = graph.layers[graph.body.front().layer];
  std::vector<std::string> names;
  for (const OpId id : layer.backward) names.push_back(layer.ops[id].name);
  EXPECT_THAT(names, ElementsAre("fc2.dgrad", "fc2.wgrad", "activation.dgrad", "fc1.dgrad",
                                 "fc1.wgrad", "norm2.dgrad", "residual1.dsum", "proj.dgrad",
                                 "proj.wgrad", "attention.dgrad", "rotary.dgrad", "qkv.dgrad",
                                 "qkv.wgrad", "norm1.dgrad", "input.dsum"));
}

Flop model_flop(const Layer& layer) {
  Flop sum;
  for (const Op& op : layer.ops) sum += model_flop_of(op.kind, op.pass, op.shape);
  return sum;
}

Flop model_flop_per_token(const OpGraph& graph) {
  const Flop whole =
      model_flop(graph.layers[graph.embedding]) +
      static_cast<double>(graph.depth()) * model_flop(graph.layers[graph.body.front().layer]) +
      model_flop(graph.layers[graph.head]);
  return whole / static_cast<double>(graph.tokens());
}

Architecture without_window(Architecture a) {
  a.sliding_window = 0;
  return a;
}

void expect_same(Flop graph, Flop formula, const std::string& name) {
  EXPECT_NEAR(graph.value(), formula.value(), 1e-12 * formula.value()) << name;
}

TEST(Differentiate, TheGraphsMatrixWorkIsTheConventions) {
  std::mt19937 random(2);
  std::vector<Architecture> architectures = one_of_each();
  for (int i = 0; i < 100; ++i) architectures.push_back(any_architecture(random));
  for (const Architecture& a : architectures) {
    const std::int64_t s = 1 + draw(random, 8192);
    GraphOptions options = {.micro_batch = 2, .seq_len = s};
    expect_same(model_flop_per_token(training_graph(a, options)),
                flop_per_token(a, s, FlopConvention::causal_attention), a.name);
    options.causal = false;
    expect_same(model_flop_per_token(training_graph(without_window(a), options)),
                flop_per_token(a, s, FlopConvention::full_attention), a.name);
    options.causal = true;  // as the model is: the kernels compute every pair all the same
    options.flash_attention = false;
    expect_same(model_flop_per_token(training_graph(a, options)),
                flop_per_token(a, s, FlopConvention::full_attention), a.name);
  }
}

// The kind of each run, in order of execution.
std::vector<LayerId> in_order(const OpGraph& graph) {
  std::vector<LayerId> found;
  for (const std::vector<Run>& runs : {graph.front, graph.body, graph.back}) {
    for (const Run& run : runs) found.push_back(run.layer);
  }
  return found;
}

// --- laws of every layer of every graph
// -----------------------------------------------------------
class Laws : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::mt19937 random(static_cast<std::uint32_t>(GetParam()));
    const auto coin = [&random] { return draw(random, 2) == 1; };
    const Architecture a = coin() ? any_mixed_architecture(random) : any_architecture(random);
    const bool tuned = coin();
    graph_ = training_graph(a, {.micro_batch = 1 + draw(random, 3),
                                .seq_len = 1 + draw(random, 64),
                                .matrices = coin() ? Precision::fp8 : Precision::bf16,
                                .flash_attention = coin(),
                                .dropout = coin(),
                                .documents = 1.5,
                                .frozen = tuned,
                                .adapter_rank = tuned ? draw(random, 8) : 0,
                                .adapt_feed_forward = coin(),
                                .train_embeddings = coin(),
                                .quantised = tuned && coin(),
                                .frozen_towers = coin(),
                                .frozen_projector = coin(),
                                .images = 0.5,
                                .expert_load = 1.25});
  }

  OpGraph graph_;
};

bool is_parameter(const Tensor& tensor) { return tensor.role == TensorRole::parameter; }
bool is_trained(const Tensor& tensor) { return is_parameter(tensor) && !tensor.frozen; }

TEST_P(Laws, EveryTensorIsWrittenOnceAndBeforeItIsRead) {
  for (const Layer& layer : graph_.layers) {
    std::set<TensorId> written = {layer.input, layer.output_gradient};
    for (const TensorId id : layer.tensors.ids()) {
      if (is_parameter(layer.tensors[id])) written.insert(id);
    }
    std::vector<OpId> order = layer.forward;
    order.insert(order.end(), layer.backward.begin(), layer.backward.end());
    EXPECT_EQ(order.size(), layer.ops.size());
    for (const OpId id : order) {
      const Op& op = layer.ops[id];
      for (const TensorId read : op.reads) EXPECT_TRUE(written.contains(read)) << op.name;
      for (const TensorId write : op.writes) EXPECT_TRUE(written.insert(write).second) << op.name;
    }
    written.erase(TensorId::none());
    EXPECT_EQ(written.size(), layer.tensors.size());
  }
}

TEST_P(Laws, EveryTrainedParameterHasOneGradientOfItsSize) {
  for (const Layer& layer : graph_.layers) {
    std::map<std::string, std::int64_t> parameters, gradients;
    for (const Tensor& tensor : layer.tensors) {
      if (is_trained(tensor)) parameters["d(" + tensor.name + ")"] += tensor.elements;
      if (tensor.role == TensorRole::parameter_gradient) gradients[tensor.name] += tensor.elements;
    }
    EXPECT_EQ(parameters, gradients) << layer.name;
  }
}

TEST_P(Laws, EveryGradientNamesItsForwardOperator) {
  for (const Layer& layer : graph_.layers) {
    for (const OpId id : layer.forward) EXPECT_TRUE(layer.ops[id].forward.is_none());
    for (const OpId id : layer.backward) {
      const Op& op = layer.ops[id];
      EXPECT_NE(op.pass, Pass::forward) << op.name;
      EXPECT_EQ(layer.ops[op.forward].pass, Pass::forward) << op.name;
    }
  }
}

TEST_P(Laws, GradientsEnterAndLeaveWhereSomethingIsTrained) {
  bool trained = false;  // this layer or what stands before it
  std::size_t place = 0;
  for (const LayerId id : in_order(graph_)) {
    const Layer& layer = graph_.layers[id];
    if (place++ == graph_.front.size()) trained = true;  // the body is written once for all places
    EXPECT_EQ(bool(layer.input_gradient), bool(layer.input) && trained) << layer.name;
    for (const Tensor& tensor : layer.tensors) trained |= is_trained(tensor);
    EXPECT_EQ(bool(layer.output_gradient), bool(layer.output) && trained) << layer.name;
    EXPECT_EQ(layer.backward.empty(), !trained) << layer.name;
    if (!layer.input_gradient) continue;
    EXPECT_EQ(layer.tensors[layer.input].elements, layer.tensors[layer.input_gradient].elements);
    EXPECT_EQ(layer.tensors[layer.input_gradient].dtype, Precision::bf16);
  }
}

TEST_P(Laws, WhatOneLayerGivesTheNextTakes) {
  std::string given;
  std::int64_t elements = 0;
  for (const LayerId id : in_order(graph_)) {
    const Layer& layer = graph_.layers[id];
    if (layer.input) {
      EXPECT_EQ(layer.takes, given) << layer.name;
      EXPECT_EQ(layer.tensors[layer.input].elements, elements) << layer.name;
    }
    given = layer.gives;
    if (layer.output) elements = layer.tensors[layer.output].elements;
  }
}

// A second reader's gradient must be joined to the first, not take its place.
TEST_P(Laws, EveryGradientIsReadOrLeaves) {
  for (const Layer& layer : graph_.layers) {
    std::set<TensorId> read = {layer.input_gradient};
    for (const Op& op : layer.ops) read.insert(op.reads.begin(), op.reads.end());
    for (const TensorId id : layer.tensors.ids()) {
      if (layer.tensors[id].role != TensorRole::gradient) continue;
      EXPECT_TRUE(read.contains(id)) << layer.tensors[id].name;
    }
  }
}

TEST_P(Laws, NoGradientReadsABias) {
  for (const Layer& layer : graph_.layers) {
    for (const OpId id : layer.backward) {
      for (const TensorId read : layer.ops[id].reads) {
        EXPECT_FALSE(layer.tensors[read].name.ends_with(".bias")) << layer.ops[id].name;
      }
    }
  }
}

// A pointwise operator is divided as the tensors that it touches are; but all heads share the
// rotated part of latent keys, and all channels the projections of a scan's state.
TEST_P(Laws, ElementwiseOperatorsAreDividedAsTheirTensors) {
  for (const Layer& layer : graph_.layers) {
    for (const Op& op : layer.ops) {
      if (!std::holds_alternative<Elementwise>(op.shape)) continue;
      if (op.parallel == Parallel::vocabulary) continue;
      if (op.kind == OpKind::rotary || op.kind == OpKind::scan) continue;
      std::vector<TensorId> touched = op.reads;
      touched.insert(touched.end(), op.writes.begin(), op.writes.end());
      for (const TensorId id : touched) {
        const Tensor& tensor = layer.tensors[id];
        if (is_parameter(tensor) || tensor.role == TensorRole::parameter_gradient) continue;
        EXPECT_EQ(tensor.split == Split::features, op.parallel == Parallel::features) << op.name;
      }
    }
  }
}

// A matmul with W [k, n] does the same work in each of its three passes.
TEST_P(Laws, TheThreePassesOfAMatmulCostTheSame) {
  for (const Layer& layer : graph_.layers) {
    for (const OpId id : layer.ops.ids()) {
      const Op& op = layer.ops[id];
      if (op.kind != OpKind::matmul || op.pass == Pass::forward) continue;
      EXPECT_EQ(work_of(layer, id).flop, work_of(layer, op.forward).flop) << op.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AnyArchitecture, Laws, testing::Range(0, 200));

TEST(Differentiate, HappensOnce) {
  OpGraph graph = training_graph(gpt2(), {.micro_batch = 1, .seq_len = 64});
  EXPECT_THROW(differentiate(graph.layers[graph.body.front().layer]), ContractError);
}

}  // namespace
}  // namespace orrery

// Graphs of which only a part is trained: adapters, frozen and 4-bit weights, towers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/build.h"
#include "model/test_models.h"

namespace orrery {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(const Layer& layer, const std::vector<OpId>& ops) {
  std::vector<std::string> found;
  for (const OpId id : ops) found.push_back(layer.ops[id].name);
  return found;
}

std::vector<std::string> saved_names(const Layer& layer) {
  std::vector<std::string> found;
  for (const TensorId id : layer.saved()) found.push_back(layer.tensors[id].name);
  return found;
}

const Op& op(const Layer& layer, const std::string& name) {
  for (const Op& op : layer.ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range("no operator " + name);
}

const Layer& decoder(const OpGraph& graph) { return graph.layers[graph.body.front().layer]; }

std::vector<std::string> layer_names(const OpGraph& graph, const std::vector<Run>& runs) {
  std::vector<std::string> found;
  for (const Run& run : runs) found.push_back(graph.layers[run.layer].name);
  return found;
}

struct Parts {
  double matrices, attention;
};

Parts model_flop(const Layer& layer) {
  Parts sum = {0, 0};
  for (const Op& op : layer.ops) {
    const double flop = model_flop_of(op.kind, op.pass, op.shape).value();
    (op.kind == OpKind::matmul ? sum.matrices : sum.attention) += flop;
  }
  return sum;
}

std::int64_t trained_elements(const Layer& layer) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : layer.tensors) {
    if (tensor.role == TensorRole::parameter && !tensor.frozen) sum += tensor.elements;
  }
  return sum;
}

const GraphOptions kWhole = {.micro_batch = 1, .seq_len = 512};
const GraphOptions kFrozen = {.micro_batch = 1, .seq_len = 512, .frozen = true};
const GraphOptions kAdapted = {
    .micro_batch = 1, .seq_len = 512, .frozen = true, .adapter_rank = 16};

TEST(Frozen, MatricesHaveNoWeightGradientAndKeepNoInput) {
  const OpGraph graph = training_graph(llama_3_1_8b(), kFrozen);
  const Layer& layer = decoder(graph);
  for (const std::string& name : names(layer, layer.backward)) {
    EXPECT_FALSE(name.ends_with(".wgrad")) << name;
  }
  EXPECT_THAT(saved_names(layer), ElementsAre("input", "v", "rotary.q", "rotary.k", "attention",
                                              "attention.statistics", "residual1", "fc1"));
  EXPECT_EQ(trained_elements(layer), 0);
}

TEST(Frozen, TheEmbeddingHasNoBackwardPassAndTheHeadOnlyPassesGradientsOn) {
  const OpGraph graph = training_graph(llama_3_1_8b(), kFrozen);
  const Layer& embedding = graph.layers[graph.embedding];
  EXPECT_THAT(embedding.backward, IsEmpty());
  EXPECT_THAT(embedding.saved(), IsEmpty());
  EXPECT_FALSE(embedding.output_gradient);
  const Layer& head = graph.layers[graph.head];
  EXPECT_THAT(names(head, head.backward),
              ElementsAre("cross_entropy.dgrad", "logits.dgrad", "norm.dgrad"));
}

TEST(Frozen, EmbeddingAndHeadMayBeTrainedAlone) {
  GraphOptions options = kFrozen;
  options.train_embeddings = true;
  const OpGraph graph = training_graph(llama_3_1_8b(), options);
  EXPECT_EQ(trained_elements(graph.layers[graph.embedding]), 128256 * 4096);
  EXPECT_EQ(trained_elements(graph.layers[graph.head]), 128256 * 4096 + 4096);
  EXPECT_EQ(trained_elements(decoder(graph)), 0);
}

// Forward and data gradients: two products of three; attention as ever; adapters all three.
TEST(Adapters, TakeAThirdOfTheMatrixWorkAway) {
  const Parts whole = model_flop(decoder(training_graph(llama_3_1_8b(), kWhole)));
  const Parts tuned = model_flop(decoder(training_graph(llama_3_1_8b(), kAdapted)));
  const double h = 4096, kv = 1024, f = 14336, r = 16;
  const double adapters = r * ((h + h + 2 * kv) + (h + h) + (h + 2 * f) + (f + h));
  EXPECT_DOUBLE_EQ(tuned.matrices, whole.matrices * 2 / 3 + 6 * 512 * adapters);
  EXPECT_DOUBLE_EQ(tuned.attention, whole.attention);
}

// arXiv 2106.09685, section 4.1: [k, r] and [r, n] beside each [k, n].
TEST(Adapters, AreAllThatIsTrained) {
  const OpGraph graph = training_graph(llama_3_1_8b(), kAdapted);
  EXPECT_EQ(trained_elements(decoder(graph)),
            16 * ((4096 + 6144) + (4096 + 4096) + (4096 + 2 * 14336) + (14336 + 4096)));
  EXPECT_EQ(trained_elements(graph.layers[graph.embedding]), 0);
  EXPECT_EQ(trained_elements(graph.layers[graph.head]), 0);
}

TEST(Adapters, StandBesideTheMatricesThatAreNamed) {
  GraphOptions options = kAdapted;
  options.adapt_feed_forward = false;
  const OpGraph graph = training_graph(llama_3_1_8b(), options);
  const Layer& layer = decoder(graph);
  EXPECT_THAT(
      names(layer, layer.forward),
      ElementsAre("norm1", "qkv", "qkv.lora_a", "qkv.lora_b", "q.adapted", "k.adapted", "v.adapted",
                  "rotary", "attention", "proj", "proj.lora_a", "proj.lora_b", "proj.adapted",
                  "residual1", "norm2", "fc1", "activation", "fc2", "residual2"));
}

// What is gathered or summed over tensor ranks beside the main matrix is only `rank` wide.
TEST(Adapters, DivideTheirWideSide) {
  const OpGraph graph = training_graph(llama_3_1_8b(), kAdapted);
  const Layer& layer = decoder(graph);
  EXPECT_EQ(op(layer, "fc1.lora_a").parallel, Parallel::tokens);
  EXPECT_EQ(op(layer, "fc1.lora_b").parallel, Parallel::columns);
  EXPECT_EQ(op(layer, "fc2.lora_a").parallel, Parallel::rows);
  EXPECT_EQ(op(layer, "fc2.lora_b").parallel, Parallel::tokens);
  EXPECT_EQ(layer.tensors[op(layer, "fc1.lora_a").reads[1]].split, Split::none);
  EXPECT_EQ(layer.tensors[op(layer, "fc1.lora_b").reads[1]].split, Split::features);
}

// QLoRA (arXiv 2305.14314): matrices of the layers in 4 bits, brought back forward and backward.
TEST(Adapters, QuantisedMatricesAreBroughtBackAtEachUse) {
  GraphOptions options = kAdapted;
  options.quantised = true;
  const OpGraph graph = training_graph(llama_3_1_8b(), options);
  for (const Op& op : decoder(graph).ops) {
    const bool frozen = op.kind == OpKind::matmul && op.name.find("lora") == std::string::npos;
    EXPECT_EQ(op.quantised, frozen) << op.name;
  }
  for (const Tensor& tensor : decoder(graph).tensors) {
    EXPECT_TRUE(tensor.frozen || !tensor.quantised) << tensor.name;
  }
  for (const Tensor& tensor : graph.layers[graph.head].tensors) EXPECT_FALSE(tensor.quantised);
}

// --- towers ------------------------------------------------------------------------------------

TEST(Tower, StandsBeforeTheEmbedding) {
  const OpGraph graph = training_graph(llava_1_5_7b(), kWhole);
  EXPECT_THAT(
      layer_names(graph, graph.front),
      ElementsAre("vision stem", "vision layer", "vision norm", "vision projector", "embedding"));
  EXPECT_EQ(graph.front[1].count, 24);
  EXPECT_EQ(graph.layers[graph.front[0].layer].gives, "vision hidden");
  EXPECT_EQ(graph.layers[graph.embedding].takes, "vision features");
  EXPECT_EQ(graph.layers[graph.embedding].gives, "hidden");
  EXPECT_EQ(graph.depth(), 32);
}

// CLIP ViT-L/14 at 336 pixels: 577 tokens, every pair of them, 4 h^2 + 2 x 4 h^2 weights a layer.
TEST(Tower, WorksOnAllTokensOfWholeImages) {
  GraphOptions options = kWhole;
  options.micro_batch = 3;
  options.images = 0.5;  // one and a half a micro-batch are two
  const OpGraph graph = training_graph(llava_1_5_7b(), options);
  const Parts layer = model_flop(graph.layers[graph.front[1].layer]);
  const double h = 1024, tokens = 577;
  EXPECT_DOUBLE_EQ(layer.matrices, 2 * 6 * tokens * 12 * h * h);
  EXPECT_DOUBLE_EQ(layer.attention, 2 * 12 * tokens * tokens * h);
  const Layer& projector = graph.layers[graph.front[3].layer];
  EXPECT_DOUBLE_EQ(model_flop(projector).matrices, 6 * 2 * 576 * (h * 4096 + 4096.0 * 4096));
  const Layer& embedding = graph.layers[graph.embedding];
  EXPECT_EQ(embedding.tensors[embedding.input].elements, 2 * 576 * 4096);
  EXPECT_EQ(embedding.tensors[embedding.input_gradient].elements, 2 * 576 * 4096);
}

TEST(Tower, FrozenOnesOnlyRunForward) {
  GraphOptions options = kWhole;
  options.frozen_towers = true;
  const OpGraph graph = training_graph(llava_1_5_7b(), options);
  for (std::size_t i = 0; i < 3; ++i) {
    const Layer& layer = graph.layers[graph.front[i].layer];
    EXPECT_THAT(layer.backward, IsEmpty()) << layer.name;
    EXPECT_THAT(layer.saved(), IsEmpty()) << layer.name;
  }
  const Layer& projector = graph.layers[graph.front[3].layer];
  EXPECT_FALSE(projector.input_gradient);
  EXPECT_THAT(names(projector, projector.backward),
              ElementsAre("projection2.dgrad", "projection2.wgrad", "projection2.activation.dgrad",
                          "projection1.wgrad"));
}

TEST(Tower, AFrozenProjectorStillPassesGradientsToATrainedTower) {
  GraphOptions options = kWhole;
  options.frozen_projector = true;
  const OpGraph graph = training_graph(llava_1_5_7b(), options);
  const Layer& projector = graph.layers[graph.front[3].layer];
  EXPECT_TRUE(projector.input_gradient);
  EXPECT_EQ(trained_elements(projector), 0);
}

TEST(Encoder, SeesEveryPairAndEndsInATaskOfItsOwn) {
  Architecture bert = gpt_like("bert", 12, 768, 12, 30522, 512);
  bert.causal = bert.has_head = bert.final_norm = false;
  bert.embedding_norm = true;
  const OpGraph graph = training_graph(bert, kWhole);
  EXPECT_EQ(attended_pairs(std::get<Attention>(op(decoder(graph), "attention").shape)),
            512.0 * 512);
  const Layer& head = graph.layers[graph.head];
  EXPECT_THAT(names(head, head.forward), ElementsAre("loss"));
  EXPECT_TRUE(head.input_gradient);
  EXPECT_FALSE(graph.tied_embeddings);
}

TEST(Unlowered, SaysWhyAnEncoderDecoderCannotBeTrained) {
  EXPECT_EQ(unlowered(llava_1_5_7b()), "");
  EXPECT_THAT(unlowered(t5_base()), testing::HasSubstr("can be described but not trained yet"));
}

}  // namespace
}  // namespace orrery

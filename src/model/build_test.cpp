#include "model/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "model/count.h"
#include "model/test_models.h"

namespace orrery {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const Layer& layer, const std::vector<OpId>& ops) {
  std::vector<std::string> found;
  for (const OpId id : ops) found.push_back(layer.ops[id].name);
  return found;
}

const Op& op(const Layer& layer, const std::string& name) {
  for (const Op& op : layer.ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range("no operator " + name);
}

std::int64_t parameter_elements(const Layer& layer) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : layer.tensors) {
    if (tensor.role == TensorRole::parameter) sum += tensor.elements;
  }
  return sum;
}

std::int64_t parameter_elements(const OpGraph& graph, const Architecture& a) {
  std::int64_t sum = graph.tied_embeddings ? -a.vocab * a.hidden : 0;
  for (const std::vector<Run>& runs : {graph.front, graph.body, graph.back}) {
    for (const Run& run : runs) sum += run.count * parameter_elements(graph.layers[run.layer]);
  }
  return sum;
}

// Weights that a description counts without saying where they act.
std::int64_t counted_only(const Architecture& a) {
  std::int64_t sum = 0;
  for (const auto& [what, weights] : a.extra) sum += weights;
  for (const Tower& tower : a.towers) sum += counted_only(tower.stack);
  return sum;
}

TEST(TrainingGraph, ListsTheOperatorsOfALlamaLayer) {
  const OpGraph graph = training_graph(llama_3_1_8b(), {.micro_batch = 1, .seq_len = 64});
  const Layer& decoder = graph.layers[graph.body.front().layer];
  EXPECT_THAT(names(decoder, decoder.forward),
              ElementsAre("norm1", "qkv", "rotary", "attention", "proj", "residual1", "norm2",
                          "fc1", "activation", "fc2", "residual2"));
  const Layer& embedding = graph.layers[graph.embedding];
  EXPECT_THAT(names(embedding, embedding.forward), ElementsAre("embedding"));
  const Layer& head = graph.layers[graph.head];
  EXPECT_THAT(names(head, head.forward), ElementsAre("norm", "logits", "cross_entropy"));
  EXPECT_EQ(graph.depth(), 32);
  EXPECT_EQ(graph.tokens(), 64);
}

TEST(TrainingGraph, ListsTheOperatorsOfAnUnfusedGpt2Layer) {
  const OpGraph graph = training_graph(
      gpt2(), {.micro_batch = 1, .seq_len = 64, .flash_attention = false, .dropout = true});
  const Layer& decoder = graph.layers[graph.body.front().layer];
  EXPECT_THAT(names(decoder, decoder.forward),
              ElementsAre("norm1", "qkv", "scores", "softmax", "softmax_dropout", "values", "proj",
                          "dropout1", "residual1", "norm2", "fc1", "activation", "fc2", "dropout2",
                          "residual2"));
  const Layer& embedding = graph.layers[graph.embedding];
  EXPECT_THAT(names(embedding, embedding.forward),
              ElementsAre("embedding", "positions", "dropout"));
}

TEST(TrainingGraph, AParallelBlockMayShareItsNorm) {
  const GraphOptions options = {.micro_batch = 1, .seq_len = 64};
  const OpGraph shared = training_graph(phi_2(), options);
  const Layer& phi = shared.layers[shared.body.front().layer];
  EXPECT_EQ(op(phi, "fc1").reads[0], op(phi, "norm1").writes[0]);
  EXPECT_EQ(op(phi, "qkv").reads[0], op(phi, "norm1").writes[0]);
  const OpGraph own = training_graph(falcon_40b(), options);
  const Layer& falcon = own.layers[own.body.front().layer];
  EXPECT_EQ(op(falcon, "norm2").reads[0], falcon.input);
}

TEST(TrainingGraph, DividesAsMegatronDoes) {
  const OpGraph graph = training_graph(llama_3_1_8b(), {.micro_batch = 1, .seq_len = 64});
  const Layer& decoder = graph.layers[graph.body.front().layer];
  EXPECT_EQ(op(decoder, "qkv").parallel, Parallel::columns);
  EXPECT_EQ(op(decoder, "proj").parallel, Parallel::rows);
  EXPECT_EQ(op(decoder, "fc1").parallel, Parallel::columns);
  EXPECT_EQ(op(decoder, "fc2").parallel, Parallel::rows);
  EXPECT_EQ(op(decoder, "attention").parallel, Parallel::heads);
  EXPECT_EQ(op(decoder, "norm1").parallel, Parallel::tokens);
  EXPECT_EQ(op(decoder, "activation").parallel, Parallel::features);
  EXPECT_EQ(decoder.tensors[op(decoder, "proj").writes[0]].split, Split::sequence);
  EXPECT_EQ(decoder.tensors[op(decoder, "fc1").writes[0]].split, Split::features);
}

TEST(TrainingGraph, DividesTheBiasOfColumnsOnly) {
  const OpGraph graph = training_graph(gpt2(), {.micro_batch = 1, .seq_len = 64});
  const Layer& decoder = graph.layers[graph.body.front().layer];
  EXPECT_EQ(decoder.tensors[op(decoder, "fc1").reads[2]].split, Split::features);
  EXPECT_EQ(decoder.tensors[op(decoder, "fc2").reads[2]].split, Split::none);
}

TEST(TrainingGraph, HoldsEveryParameterOnce) {
  std::mt19937 random(1);
  std::vector<Architecture> architectures = one_of_each();
  for (const Architecture& a :
       {mixtral_8x7b(), qwen3_30b_a3b(), qwen1_5_moe(), gpt_oss_20b(), llama_4_scout(),
        deepseek_v2_lite(), deepseek_v3(), mamba_2_8b(), mamba2_2_7b(), llava_1_5_7b()}) {
    architectures.push_back(a);
  }
  for (int i = 0; i < 200; ++i) architectures.push_back(any_architecture(random));
  for (int i = 0; i < 200; ++i) architectures.push_back(any_mixed_architecture(random));
  for (const Architecture& a : architectures) {
    const OpGraph graph = training_graph(a, {.micro_batch = 1, .seq_len = 32});
    EXPECT_EQ(parameter_elements(graph, a) + counted_only(a), parameters(a).total()) << a.name;
  }
}

TEST(TrainingGraph, PadsTheVocabularyOnBothSides) {
  const OpGraph graph =
      training_graph(gpt2(), {.micro_batch = 1, .seq_len = 64, .padded_vocab = 50304});
  EXPECT_EQ(std::get<Matmul>(op(graph.layers[graph.head], "logits").shape).n, 50304);
  EXPECT_EQ(graph.layers[graph.embedding].tensors[TensorId(0)].elements, 50304 * 768);
}

TEST(TrainingGraph, NarrowMatricesReadCastOperands) {
  const OpGraph graph =
      training_graph(llama_3_1_8b(), {.micro_batch = 1, .seq_len = 64, .matrices = Precision::fp8});
  const Layer& decoder = graph.layers[graph.body.front().layer];
  for (const std::string name : {"qkv", "proj", "fc1", "fc2"}) {
    const Op& matmul = op(decoder, name);
    EXPECT_EQ(matmul.precision, Precision::fp8);
    EXPECT_EQ(decoder.tensors[matmul.reads[0]].dtype, Precision::fp8) << name;
    EXPECT_EQ(decoder.tensors[matmul.reads[1]].dtype, Precision::fp8) << name;
    EXPECT_EQ(decoder.tensors[matmul.writes[0]].dtype, Precision::bf16) << name;
    for (const char* gradient : {".dgrad", ".wgrad"}) {
      const Op& backward = op(decoder, name + gradient);
      for (const TensorId read : backward.reads) {
        EXPECT_EQ(decoder.tensors[read].dtype, Precision::fp8) << backward.name;
      }
      EXPECT_EQ(decoder.tensors[backward.writes[0]].dtype, Precision::bf16) << backward.name;
    }
  }
  EXPECT_EQ(op(decoder, "attention").precision, Precision::bf16);
  EXPECT_EQ(op(graph.layers[graph.head], "logits").precision, Precision::bf16);
}

TEST(TrainingGraph, RefusesAnImpossibleShape) {
  Architecture a = llama_3_1_8b();
  a.kv_heads = 5;
  EXPECT_THROW(training_graph(a, {.micro_batch = 1, .seq_len = 64}), ContractError);
  EXPECT_THROW(training_graph(gpt2(), {.micro_batch = 0, .seq_len = 64}), ContractError);
}

}  // namespace
}  // namespace orrery

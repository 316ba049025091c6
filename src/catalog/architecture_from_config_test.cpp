#include "catalog/architecture_from_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/catalog.h"
#include "core/error.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

Architecture read(const std::string& text) {
  return architecture_from_config(parse_json(text, "test"), "config.json");
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const Json& llama() {
  static const Json json = parse_json(R"({"model_type": "llama", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
      "vocab_size": 100, "max_position_embeddings": 256})",
                                      "test");
  return json;
}

std::string llama_with(const std::string& key, Json value) {
  Json json = llama();
  json.set(key, std::move(value));
  return json.dump();
}

TEST(ArchitectureFromConfig, ReadsLlama) {
  const Architecture a = catalog().model("llama-3.1-70b");
  EXPECT_EQ(a.name, "llama-3.1-70b");
  EXPECT_EQ(a.family, "llama");
  EXPECT_EQ(a.layers, 80);
  EXPECT_EQ(a.hidden, 8192);
  EXPECT_EQ(a.heads, 64);
  EXPECT_EQ(a.kv_heads, 8);
  EXPECT_EQ(a.head_dim, 128);
  EXPECT_EQ(a.ffn, 28672);
  EXPECT_EQ(a.vocab, 128256);
  EXPECT_EQ(a.max_positions, 131072);
  EXPECT_EQ(a.activation, Activation::swiglu);
  EXPECT_EQ(a.norm, Norm::rms_norm);
  EXPECT_EQ(a.positions, Positions::rotary);
  EXPECT_FALSE(a.tied_embeddings || a.qkv_bias || a.output_bias || a.mlp_bias || a.norm_bias);
  EXPECT_EQ(a.position_rows, 0);
  EXPECT_TRUE(a.defaults.empty());
}

TEST(ArchitectureFromConfig, SaysWhatTheFamilyFilledIn) {
  const Architecture a = catalog().model("gpt2");
  EXPECT_EQ(a.hidden, 768);
  EXPECT_EQ(a.ffn, 3072);
  EXPECT_EQ(a.position_rows, 1024);
  EXPECT_TRUE(a.tied_embeddings && a.qkv_bias && a.output_bias && a.mlp_bias && a.norm_bias);
  EXPECT_EQ(a.defaults, (std::vector<std::string>{"num_key_value_heads = 12 (gpt2)",
                                                  "intermediate_size = 3072 (gpt2)",
                                                  "tie_word_embeddings = true (gpt2)"}));
}

TEST(ArchitectureFromConfig, KnowsWhatEachFamilyDoesUnasked) {
  const Architecture qwen2 = catalog().model("qwen2.5-7b");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_EQ(qwen2.sliding_window, 0);  // use_sliding_window is false

  const Architecture qwen3 = catalog().model("qwen3-8b");
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);

  const Architecture mistral = catalog().model("mistral-7b");
  EXPECT_EQ(mistral.sliding_window, 4096);

  const Architecture gemma = catalog().model("gemma-2b");
  EXPECT_EQ(gemma.activation, Activation::geglu);
  EXPECT_TRUE(gemma.tied_embeddings);
  EXPECT_EQ(gemma.kv_heads, 1);
  EXPECT_EQ(gemma.head_dim, 256);

  const Architecture phi = catalog().model("phi-2");
  EXPECT_EQ(phi.family, "phi");
  EXPECT_TRUE(phi.head_bias && phi.qkv_bias && phi.parallel_block);
  EXPECT_EQ(phi.norms_per_layer, 1);
  EXPECT_EQ(phi.ffn, 10240);

  const Architecture phi3 = catalog().model("phi-3-mini");
  EXPECT_EQ(phi3.sliding_window, 0);  // wider than its positions

  const Architecture bloom = catalog().model("bloom-176b");
  EXPECT_EQ(bloom.hidden, 14336);
  EXPECT_EQ(bloom.ffn, 57344);
  EXPECT_EQ(bloom.positions, Positions::alibi);
  EXPECT_TRUE(bloom.embedding_norm && bloom.tied_embeddings);

  const Architecture opt = catalog().model("opt-66b");
  EXPECT_EQ(opt.activation, Activation::relu);
  EXPECT_EQ(opt.position_rows, 2050);

  const Architecture neox = catalog().model("gpt-neox-20b");
  EXPECT_TRUE(neox.parallel_block);
  EXPECT_EQ(neox.norms_per_layer, 2);

  const Architecture nemotron = catalog().model("nemotron-4-15b");
  EXPECT_EQ(nemotron.activation, Activation::squared_relu);
  EXPECT_TRUE(nemotron.norm_bias);
  EXPECT_FALSE(nemotron.mlp_bias);
}

TEST(ArchitectureFromConfig, ReadsFalconOldAndNew) {
  const Architecture newer = catalog().model("falcon-40b");
  EXPECT_EQ(newer.kv_heads, 8);
  EXPECT_EQ(newer.norms_per_layer, 2);
  EXPECT_EQ(newer.ffn, 32768);
  const Architecture older = read(R"({"model_type": "falcon", "hidden_size": 4544,
      "num_attention_heads": 71, "num_hidden_layers": 32, "vocab_size": 65024})");
  EXPECT_EQ(older.kv_heads, 1);
  EXPECT_EQ(older.norms_per_layer, 1);
  EXPECT_TRUE(older.parallel_block && older.tied_embeddings);
}

TEST(ArchitectureFromConfig, ReadsBothKindsOfMpt) {
  const Architecture foundry = catalog().model("mpt-7b");
  EXPECT_EQ(foundry.positions, Positions::learned);
  EXPECT_EQ(foundry.position_rows, 2048);
  EXPECT_TRUE(foundry.qkv_bias && foundry.mlp_bias && foundry.norm_bias);
  const Architecture released = read(R"({"model_type": "mpt", "d_model": 64, "n_heads": 4,
      "n_layers": 2, "vocab_size": 100, "expansion_ratio": 4, "no_bias": true,
      "attn_config": {"alibi": true, "attn_type": "grouped_query_attention", "kv_n_heads": 2}})");
  EXPECT_EQ(released.positions, Positions::alibi);
  EXPECT_EQ(released.kv_heads, 2);
  EXPECT_FALSE(released.qkv_bias || released.norm_bias);
}

TEST(ArchitectureFromConfig, ReadsMegatronsOptions) {
  const Architecture a = read(R"({"model_type": "megatron_gpt", "hidden_size": 64,
      "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, "hidden_act": "relu2",
      "normalization": "RMSNorm", "position_embedding_type": "rope", "add_bias_linear": false})");
  EXPECT_EQ(a.activation, Activation::squared_relu);
  EXPECT_EQ(a.norm, Norm::rms_norm);
  EXPECT_EQ(a.positions, Positions::rotary);
  EXPECT_FALSE(a.mlp_bias || a.norm_bias);
  EXPECT_EQ(a.ffn, 256);
}

TEST(ArchitectureFromConfig, IgnoresKeysItDoesNotKnow) {
  EXPECT_EQ(read(llama_with("rope_theta", 5e5)).hidden, 64);
}

TEST(ArchitectureFromConfig, RefusesUnknownFamiliesWithTheNearest) {
  EXPECT_EQ(
      refusal(R"({"model_type": "llama7", "hidden_size": 64, "vocab_size": 100})"),
      "config.json: model_type: the family \"llama7\" is not known (it gives hidden_size, "
      "vocab_size, but not num_hidden_layers, num_attention_heads, intermediate_size); nearest "
      "are llama, llama4, llama4_text; if it is none of these, describe the model by hand under "
      "`custom:` in a scenario file");
  EXPECT_EQ(refusal(R"({"model_type": "rwkv5"})"),
            "config.json: model_type: the family \"rwkv5\" is not known (it gives none of "
            "hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, vocab_size); "
            "describe the model by hand under `custom:` in a scenario file");
}

TEST(ArchitectureFromConfig, RefusesPartsThatAFamilyDoesNotHave) {
  EXPECT_EQ(refusal(llama_with("num_local_experts", 8)),
            "config.json: num_local_experts: the family llama has no experts");
  EXPECT_EQ(refusal(llama_with("kv_lora_rank", 512)),
            "config.json: kv_lora_rank: the family llama has no latent attention");
  EXPECT_TRUE(refusal(llama_with("vision_config", Json::object()))
                  .starts_with("config.json: vision_config: the family llama has no towers"));
  EXPECT_EQ(refusal(llama_with("is_encoder_decoder", true)),
            "config.json: is_encoder_decoder: the family llama is a decoder");
}

TEST(ArchitectureFromConfig, RefusesWhatIsMissingOrOfTheWrongType) {
  EXPECT_EQ(refusal(R"({})"), "config.json: the key \"model_type\" is missing");
  EXPECT_EQ(refusal("[]"), "config.json: expected an object, got an array");
  EXPECT_EQ(refusal(R"({"model_type": "llama"})"),
            "config.json: hidden_size: missing; any of its names will do: hidden_size, n_embd, "
            "n_embed, d_model");
  EXPECT_EQ(refusal(llama_with("hidden_size", "64")),
            "config.json: hidden_size: expected an integer, got \"64\"");
  EXPECT_EQ(refusal(llama_with("hidden_size", 64.5)),
            "config.json: hidden_size: expected an integer, got 64.5");
  EXPECT_EQ(refusal(llama_with("tie_word_embeddings", 1)),
            "config.json: tie_word_embeddings: expected true or false, got 1");
  EXPECT_EQ(refusal(llama_with("hidden_act", "tanh")),
            "config.json: hidden_act: the activation \"tanh\" is not supported in llama");
}

TEST(ArchitectureFromConfig, RefusesImpossibleShapes) {
  EXPECT_EQ(refusal(llama_with("hidden_size", 0)),
            "config.json: hidden_size: must be between 1 and 10000000, got 0");
  EXPECT_EQ(refusal(llama_with("num_hidden_layers", -3)),
            "config.json: num_hidden_layers: must be between 1 and 10000, got -3");
  EXPECT_EQ(refusal(llama_with("hidden_size", 20000000)),
            "config.json: hidden_size: must be between 1 and 10000000, got 20000000");
  EXPECT_EQ(refusal(llama_with("num_attention_heads", 5)),
            "config.json: num_attention_heads: 5 heads do not divide the width 64; give head_dim "
            "if that is meant");
  EXPECT_EQ(refusal(llama_with("num_key_value_heads", 3)),
            "config.json: num_key_value_heads: 3 key-value heads do not divide 4 heads");
  EXPECT_EQ(refusal(llama_with("n_embd", 128)),
            "config.json: n_embd: 128 disagrees with hidden_size = 64");
  Json huge = llama();
  huge.set("hidden_size", 8000000).set("num_hidden_layers", 9000);
  EXPECT_EQ(refusal(huge.dump()), "config.json: such a model would have more than 1e18 weights");
}

TEST(ArchitectureFromConfig, TakesHeadsThatDoNotDivideWhenTheirWidthIsGiven) {
  Json json = llama();
  json.set("num_attention_heads", 5).set("head_dim", 16).set("num_key_value_heads", 5);
  const Architecture a = architecture_from_config(json, "config.json");
  EXPECT_EQ(a.heads * a.head_dim, 80);
}

TEST(ArchitectureFromConfig, TakesNullAsAllHeads) {
  Json json = llama();
  json.set("model_type", "mistral").set("num_key_value_heads", nullptr);
  EXPECT_EQ(architecture_from_config(json, "config.json").kv_heads, 4);
}

}  // namespace
}  // namespace orrery

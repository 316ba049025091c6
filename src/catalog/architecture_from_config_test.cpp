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

// "3 dense, 58 experts".
std::string layers_of(const Architecture& a) {
  std::string text;
  for (const LayerRun& run : layer_runs(a)) {
    text += (text.empty() ? "" : ", ") + std::to_string(run.count) + " " + run.kind.name;
  }
  return text;
}

Json with(Json json, const std::string& key, Json value) {
  json.set(key, std::move(value));
  return json;
}

TEST(ArchitectureFromConfig, ReadsExpertsAndTheDenseLayersBeforeThem) {
  const Architecture a = catalog().model("deepseek-v3");
  EXPECT_EQ(layers_of(a), "3 dense, 58 experts");
  EXPECT_EQ(a.runs[0].kind.ffn, 18432);
  EXPECT_EQ(a.runs[1].kind.ffn, 0);
  EXPECT_EQ(a.runs[1].kind.mixer, Mixer::latent_attention);
  EXPECT_EQ(a.experts.count, 256);
  EXPECT_EQ(a.experts.top_k, 8);
  EXPECT_EQ(a.experts.width, 2048);
  EXPECT_EQ(a.experts.shared_width, 2048);
  EXPECT_TRUE(a.experts.correction_bias);
  EXPECT_FALSE(a.experts.shared_gate);
  EXPECT_EQ(a.latent.q_rank, 1536);
  EXPECT_EQ(a.latent.kv_rank, 512);
  EXPECT_EQ(a.head_dim, 192);
  EXPECT_EQ(a.mtp_layers, 1);
  EXPECT_EQ(catalog().model("deepseek-v2-lite").latent.q_rank, 0);
}

TEST(ArchitectureFromConfig, ReadsExpertsOfEveryLayer) {
  const Architecture mixtral = catalog().model("mixtral-8x7b-v0.1");
  EXPECT_EQ(layers_of(mixtral), "32 experts");
  EXPECT_EQ(mixtral.experts.width, 14336);
  const Architecture qwen = catalog().model("qwen1.5-moe-a2.7b");
  EXPECT_TRUE(qwen.experts.shared_gate && qwen.qkv_bias);
  EXPECT_EQ(qwen.experts.shared_width, 5632);
  const Architecture grok = catalog().model("grok-1");
  EXPECT_EQ(grok.experts.count, 8);
  EXPECT_EQ(grok.activation, Activation::geglu);
  EXPECT_EQ(grok.norms_per_layer, 4);
}

TEST(ArchitectureFromConfig, FindsLocalLayersWhereverTheyAreSaid) {
  const Architecture gemma2 = catalog().model("gemma-2-27b");  // by the family
  EXPECT_EQ(gemma2.runs.size(), 46u);
  EXPECT_EQ(gemma2.runs[0].kind.window, 4096);
  EXPECT_EQ(gemma2.runs[1].kind.window, 0);
  EXPECT_EQ(gemma2.norms_per_layer, 4);
  const Architecture gemma3 = catalog().model("gemma-3-27b");  // by a pattern
  EXPECT_EQ(gemma3.runs[0].count, 5);
  EXPECT_EQ(gemma3.runs[1].count, 1);
  EXPECT_EQ(gemma3.runs[0].kind.window, 1024);
  EXPECT_EQ(gemma3.runs.back().kind.name, "local");         // 62 = 10 x 6 + 2
  const Architecture oss = catalog().model("gpt-oss-20b");  // by a list
  EXPECT_EQ(oss.runs[0].kind.window, 128);
  EXPECT_EQ(oss.runs[0].kind.name, "local experts");
  EXPECT_EQ(oss.runs[1].kind.window, 0);
  EXPECT_TRUE(oss.attention_sinks && oss.experts.bias && oss.experts.router_bias);
}

TEST(ArchitectureFromConfig, ReadsLlama4sChunksAndLayersWithoutPositions) {
  const Architecture a = catalog().model("llama-4-scout-17b-16e");
  EXPECT_EQ(a.family, "llama4");
  EXPECT_EQ(a.runs.size(), 24u);
  EXPECT_EQ(a.runs[0].count, 3);
  EXPECT_EQ(a.runs[0].kind.window, 8192);
  EXPECT_TRUE(a.runs[0].kind.chunked && a.runs[0].kind.rotary);
  EXPECT_FALSE(a.runs[1].kind.rotary);
  EXPECT_EQ(a.runs[1].kind.window, 0);
  EXPECT_FALSE(a.qk_norm);  // that norm has no weights
  EXPECT_EQ(a.experts.shared_width, 8192);
  const Architecture maverick = read(R"({"model_type": "llama4_text", "hidden_size": 5120,
      "num_hidden_layers": 48, "num_attention_heads": 40, "vocab_size": 202048,
      "intermediate_size": 8192, "interleave_moe_layer_step": 2, "num_local_experts": 128})");
  EXPECT_EQ(expert_layers(maverick), 24);
  EXPECT_EQ(maverick.runs[0].kind.ffn, 16384);
  EXPECT_TRUE(maverick.runs[1].kind.experts);
}

TEST(ArchitectureFromConfig, FillsAnIncompleteTextPartFromItsClass) {
  const Architecture a = catalog().model("llava-1.5-7b");
  EXPECT_EQ(a.family, "llava");
  EXPECT_EQ(a.hidden, 4096);
  EXPECT_EQ(a.layers, 32);
  EXPECT_EQ(a.ffn, 11008);
  EXPECT_EQ(a.vocab, 32064);
  EXPECT_EQ(std::ranges::count(a.defaults, "text_config.intermediate_size = 11008 (llama)"), 1);
  ASSERT_EQ(a.towers.size(), 1u);
  const Architecture flat = catalog().model("qwen2-vl-7b");
  EXPECT_TRUE(flat.qkv_bias);
  EXPECT_EQ(flat.hidden, 3584);
  EXPECT_EQ(flat.towers.size(), 1u);
}

TEST(ArchitectureFromConfig, TakesTheWholesWordOnTiedEmbeddingsOnlyWhereThePartIsSilent) {
  const std::string text = R"("text_config": {"model_type": "qwen2", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
      "intermediate_size": 128, "vocab_size": 100)";
  const std::string whole = R"({"model_type": "internvl", "tie_word_embeddings": true, )";
  EXPECT_TRUE(read(whole + text + "}}").tied_embeddings);
  EXPECT_FALSE(read(whole + text + R"(, "tie_word_embeddings": false}})").tied_embeddings);
}

TEST(ArchitectureFromConfig, RefusesWholesItDoesNotKnow) {
  EXPECT_TRUE(refusal(R"({"model_type": "llava_9", "text_config": {"model_type": "llama"}})")
                  .starts_with("config.json: model_type: the family \"llava_9\" is not known"));
}

TEST(ArchitectureFromConfig, TurnsOffPositionsWhereAFamilyDoes) {
  const Json smol = with(llama(), "model_type", "smollm3").set("num_hidden_layers", 4);
  const Architecture a = architecture_from_config(with(smol, "num_key_value_heads", 4), "");
  ASSERT_EQ(a.runs.size(), 2u);
  EXPECT_TRUE(a.runs[0].kind.rotary);
  EXPECT_FALSE(a.runs[1].kind.rotary);
  const Json exaone = with(llama(), "model_type", "exaone4").set("num_key_value_heads", 4);
  EXPECT_TRUE(read(with(exaone, "sliding_window", nullptr).dump()).runs.empty());
  const Architecture windowed =
      read(with(exaone, "sliding_window", 64).set("sliding_window_pattern", "LG").dump());
  EXPECT_TRUE(windowed.runs[0].kind.rotary && windowed.runs[0].kind.window == 64);
  EXPECT_FALSE(windowed.runs[1].kind.rotary);
}

TEST(ArchitectureFromConfig, ReadsMambaAndItsHybrids) {
  const Architecture mamba = catalog().model("mamba-2.8b");
  EXPECT_EQ(layers_of(mamba), "64 mamba");
  EXPECT_EQ(mamba.runs[0].kind.ffn, 0);
  EXPECT_EQ(mamba.state_space.inner, 5120);
  EXPECT_EQ(mamba.state_space.dt_rank, 160);
  EXPECT_EQ(mamba.heads, 0);
  const Architecture jamba = read(R"({"model_type": "jamba", "hidden_size": 4096,
      "num_hidden_layers": 8, "num_attention_heads": 32, "intermediate_size": 14336,
      "vocab_size": 65536})");
  EXPECT_EQ(layers_of(jamba),
            "1 mamba dense, 1 mamba experts, 1 mamba dense, 1 mamba experts, 1 attention dense, "
            "1 mamba experts, 1 mamba dense, 1 mamba experts");
}

TEST(ArchitectureFromConfig, RefusesExpertsThatCannotBe) {
  const Json mixtral = with(llama(), "model_type", "mixtral").set("num_key_value_heads", nullptr);
  const auto refused = [](const Json& json) { return refusal(json.dump()); };
  EXPECT_EQ(refused(with(mixtral, "num_experts_per_tok", 9)),
            "config.json: num_experts_per_tok: 9 active experts of 8");
  EXPECT_EQ(refused(with(mixtral, "num_experts_per_tok", 0)),
            "config.json: num_experts_per_tok: must be between 1 and 1000000, got 0");
  EXPECT_EQ(refused(with(with(mixtral, "num_local_experts", 1000000), "intermediate_size", 9000000)
                        .set("hidden_size", 1000000)),
            "config.json: such a model would have more than 1e18 weights");
}

TEST(ArchitectureFromConfig, RefusesListsThatDoNotFitTheLayers) {
  const Json gemma = with(llama(), "model_type", "gemma2").set("num_key_value_heads", 4);
  EXPECT_EQ(refusal(with(gemma, "layer_types", Json::array({"full_attention"})).dump()),
            "config.json: layer_types: 1 entries for 2 layers");
  EXPECT_EQ(refusal(with(gemma, "layer_types", Json::array({"full_attention", "linear"})).dump()),
            "config.json: layer_types: a layer of \"linear\" is not supported");
  EXPECT_EQ(
      refusal(llama_with("num_attention_heads", Json::array({4, 2}))),
      "config.json: num_attention_heads: differs from layer to layer, which is not supported");
}

// Whatever one key of a public configuration becomes, the answer is a model or an InputError.
TEST(ArchitectureFromConfig, NeverTripsOverAStrangeValue) {
  const std::vector<Json> strange = {nullptr,
                                     true,
                                     0,
                                     -1,
                                     1,
                                     3.5,
                                     7,
                                     100000,
                                     9999999,
                                     1e300,
                                     Json("auto"),
                                     "",
                                     INT64_MAX,
                                     Json::array(),
                                     Json::array({1, 2}),
                                     Json::array({"x"}),
                                     Json::object()};
  int read_models = 0, refused = 0;
  const auto attempt = [&](const Json& config, const std::string& name) {
    try {
      EXPECT_GT(architecture_from_config(config, name).layers, 0) << config.dump();
      ++read_models;
    } catch (const InputError&) {
      ++refused;
    }
  };
  for (const std::string& name : catalog().names(EntryKind::model)) {
    if (name.starts_with("gpt-") && name != "gpt-oss-20b") continue;  // sizes of one family
    const Json config = catalog().model_card(name).config;
    for (const auto& [key, value] : config.members()) {
      for (const Json& other : strange) attempt(with(config, key, other), name);
      if (!value.is_object()) continue;
      for (const auto& [inner, ignored] : value.members()) {
        for (const Json& other : strange) {
          attempt(with(config, key, with(value, inner, other)), name);
        }
      }
    }
  }
  EXPECT_GT(read_models, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace orrery

#include "catalog/tower_from_config.h"

#include <gtest/gtest.h>

#include <string>

#include "catalog/test_weights.h"
#include "core/error.h"

namespace orrery {
namespace {

Architecture text_of(std::int64_t hidden, std::int64_t ffn = 4) {
  Architecture text;
  text.hidden = hidden;
  text.ffn = ffn;
  return text;
}

Tower read(const std::string& config, std::int64_t hidden, std::int64_t ffn = 4) {
  std::vector<std::string> defaults;
  const auto towers =
      towers_from_config(parse_json(config, "test"), text_of(hidden, ffn), "config.json", defaults);
  return towers.at(0);
}

// Each total is the model's published count less that of its text stack.
std::int64_t weights(const std::string& config, std::int64_t hidden) {
  return test_tower_weights(read(config, hidden));
}

std::string refusal(const std::string& config) {
  try {
    read(config, 64);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string llava = R"({"model_type": "llava", "vision_feature_layer": -2,
    "vision_feature_select_strategy": "default",
    "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
                      "model_type": "clip_vision_model", "num_attention_heads": 16,
                      "num_hidden_layers": 24, "patch_size": 14}})";

TEST(TowerFromConfig, CountsLlava) {
  // LLaVA 1.5 7B: 7,063,427,072 with a Llama of 32,064 words.
  EXPECT_EQ(weights(llava, 4096), 7063427072 - 6738939904);
  const Tower tower = read(llava, 4096);
  EXPECT_EQ(tower.tokens, 577);
  EXPECT_EQ(tower.tokens_out, 576);
  EXPECT_EQ(tower.stack.layers, 24);
}

TEST(TowerFromConfig, CountsGemma3) {
  const std::string config = R"({"model_type": "gemma3", "mm_tokens_per_image": 256,
      "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152,
                        "intermediate_size": 4304, "num_hidden_layers": 27,
                        "num_attention_heads": 16, "image_size": 896, "patch_size": 14,
                        "vision_use_head": false}})";
  EXPECT_EQ(weights(config, 5376), 27432406640 - 27009346304);
  EXPECT_EQ(read(config, 5376).tokens, 4096);
  EXPECT_EQ(read(config, 5376).tokens_out, 256);
}

TEST(TowerFromConfig, CountsLlama4) {
  const std::string config = R"({"model_type": "llama4",
      "vision_config": {"hidden_size": 1408, "image_size": 336, "intermediate_size": 5632,
                        "num_attention_heads": 16, "num_hidden_layers": 34, "patch_size": 14,
                        "pixel_shuffle_ratio": 0.5, "vision_output_dim": 4096}})";
  EXPECT_EQ(weights(config, 5120), 108641793536 - 107769861120);
  EXPECT_EQ(read(config, 5120).tokens_out, 144);
}

TEST(TowerFromConfig, CountsQwensTowers) {
  EXPECT_EQ(weights(R"({"model_type": "qwen2_vl",
      "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584}})",
                    3584),
            8291375616 - 7615616512);
  const std::string newer = R"({"model_type": "qwen2_5_vl",
      "vision_config": {"hidden_size": 1280, "out_hidden_size": 3584}})";
  EXPECT_EQ(weights(newer, 3584), 8292166656 - 7615616512);
  const Tower tower = read(newer, 3584);
  EXPECT_EQ(tower.tokens, 4 * tower.tokens_out);
  ASSERT_EQ(tower.stack.runs.size(), 8u);
  EXPECT_EQ(tower.stack.runs[0].count, 7);
  EXPECT_EQ(tower.stack.runs[0].kind.window, 64);
  EXPECT_EQ(tower.stack.runs[1].kind.window, 0);
}

TEST(TowerFromConfig, CountsPaliGemma) {
  const std::string config = R"({"model_type": "paligemma",
      "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
                        "num_attention_heads": 16, "patch_size": 14,
                        "model_type": "siglip_vision_model"}})";
  // 2,923,466,480 with a Gemma 2B of 257,216 words.
  EXPECT_EQ(weights(config, 2048), 2923466480 - (2506172416 + (257216 - 256000) * 2048));
}

TEST(TowerFromConfig, CountsSmolVlm) {
  const std::string config = R"({"model_type": "idefics3", "scale_factor": 4,
      "vision_config": {"hidden_size": 768, "num_attention_heads": 12, "image_size": 512,
                        "patch_size": 16, "model_type": "idefics3"}})";
  // SmolVLM 256M: 256,484,928 with a SmolLM2 135M of 49,280 words and a head of its own.
  const std::int64_t text = 2 * 49280 * 576 + 30 * 3540096 + 576;
  EXPECT_EQ(weights(config, 576), 256484928 - text);
  EXPECT_EQ(read(config, 576).tokens_out, 64);
}

TEST(TowerFromConfig, CountsInternVit) {
  const std::string config = R"({"model_type": "internvl_chat", "downsample_ratio": 0.5,
      "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 1024,
                        "num_hidden_layers": 24, "num_attention_heads": 16,
                        "intermediate_size": 4096, "image_size": 448, "patch_size": 14,
                        "qkv_bias": true, "qk_normalization": false, "norm_type": "layer_norm"}})";
  // InternViT 300M: 304,012,288.
  EXPECT_EQ(weights(config, 4096), 304012288 + 2 * 4096 + (4096 + 1) * 4096 * 2);
  EXPECT_EQ(read(config, 4096).tokens_out, 256);
}

TEST(TowerFromConfig, InternVitReadsTheSameUnderBothKeys) {
  const std::string native = R"({"model_type": "internvl", "downsample_ratio": 0.5,
      "vision_config": {"attention_bias": true, "image_size": [448, 448], "patch_size": [14, 14]}})";
  EXPECT_EQ(weights(native, 4096), 304012288 + 2 * 4096 + (4096 + 1) * 4096 * 2);
}

TEST(TowerFromConfig, CountsLlama32Vision) {
  const std::string config = R"({"model_type": "mllama", "vision_config": {"image_size": 560}})";
  // 11B: 10,670,220,835 with 40 layers of text, eight of them of cross attention.
  EXPECT_EQ(weights(config, 4096), 10670220835 - 9775192080);
  EXPECT_EQ(read(config, 4096).tokens_out, 4 * 1601);
}

TEST(TowerFromConfig, CountsPhi3Vision) {
  const std::string config = R"({"model_type": "phi3_v", "img_processor": {
      "image_dim_out": 1024, "model_name": "openai/clip-vit-large-patch14-336",
      "name": "clip_vision_model", "num_img_tokens": 144}})";
  // 4,146,621,440 with the text stack of Phi-3 mini.
  EXPECT_EQ(weights(config, 3072), 4146621440 - 3821079552);
  EXPECT_EQ(read(config, 3072).tokens_out, 144);
}

TEST(TowerFromConfig, CountsQwenAudio) {
  const std::string config = R"({"model_type": "qwen2_audio", "audio_config": {}})";
  // 8,397,094,912 with a text stack of 32 layers as wide as 4096 and 156,032 words.
  EXPECT_EQ(weights(config, 4096), 8397094912 - 7754878976);
  EXPECT_EQ(read(config, 4096).tokens_out, 750);
}

TEST(TowerFromConfig, ReadsNoTowerWhereThereIsNone) {
  std::vector<std::string> defaults;
  EXPECT_TRUE(towers_from_config(parse_json(R"({"model_type": "llama"})", "test"), text_of(64),
                                 "config.json", defaults)
                  .empty());
}

TEST(TowerFromConfig, RefusesUnknownAndImpossibleTowers) {
  EXPECT_EQ(refusal(R"({"model_type": "llava", "vision_config": {"model_type": "eye"}})"),
            "config.json: vision_config.model_type: the tower \"eye\" is not supported; towers "
            "are: clip_vision_model, siglip_vision_model, pixtral");
  EXPECT_EQ(refusal(R"({"model_type": "seer", "vision_config": {}})").substr(0, 72),
            "config.json: model_type: the towers of \"seer\" are not supported; models ");
  EXPECT_EQ(refusal(R"({"model_type": "llava", "vision_config": 3})"),
            "config.json: vision_config: expected an object, got 3");
  EXPECT_EQ(refusal(R"({"model_type": "gemma3", "mm_tokens_per_image": 5000,
      "vision_config": {}})"),
            "config.json: mm_tokens_per_image: is more than the 196 patches of an image");
  EXPECT_EQ(refusal(R"({"model_type": "qwen2_5_vl",
      "vision_config": {"fullatt_block_indexes": [99], "hidden_size": 1280}})"),
            "config.json: vision_config.fullatt_block_indexes: there is no layer 99 in a stack of "
            "32");
  EXPECT_EQ(refusal(R"({"model_type": "internvl_chat", "downsample_ratio": 0.001,
      "vision_config": {}})"),
            "config.json: downsample_ratio: must be between 1/64 and 1");
}

}  // namespace
}  // namespace orrery

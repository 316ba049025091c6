#include "catalog/encoder_from_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "catalog/test_weights.h"
#include "core/error.h"

namespace orrery {
namespace {

Architecture read(const std::string& text) {
  return encoder_from_config(parse_json(text, "test"), "config.json").value();
}

std::int64_t weights(const std::string& text) { return test_weights(read(text)); }

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool notes(const Architecture& a, const std::string& what) {
  return std::find(a.defaults.begin(), a.defaults.end(), what) != a.defaults.end();
}

TEST(EncoderFromConfig, LeavesDecodersAlone) {
  EXPECT_FALSE(
      encoder_from_config(parse_json(R"({"model_type": "llama"})", "test"), "config.json"));
}

// num_parameters of the checkpoints on the Hugging Face hub, which model cards round.
TEST(EncoderFromConfig, CountsBertAndItsKin) {
  EXPECT_EQ(weights(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})"), 109482240);
  EXPECT_EQ(weights(R"({"model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096})"),
            335141888);
  EXPECT_EQ(weights(R"({"model_type": "roberta", "max_position_embeddings": 514,
      "type_vocab_size": 1, "vocab_size": 50265})"),
            124645632);
  EXPECT_EQ(weights(R"({"model_type": "xlm-roberta", "max_position_embeddings": 514,
      "type_vocab_size": 1, "vocab_size": 250002})"),
            278043648);
  EXPECT_EQ(weights(R"({"model_type": "distilbert"})"), 66362880);
  EXPECT_EQ(weights(R"({"model_type": "electra", "embedding_size": 768, "hidden_size": 768,
      "intermediate_size": 3072, "num_attention_heads": 12})"),
            108891648);
}

TEST(EncoderFromConfig, CountsNewerTextEncoders) {
  EXPECT_EQ(weights(R"({"model_type": "deberta-v2", "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "position_buckets": 256,
      "max_relative_positions": -1, "relative_attention": true, "share_att_key": true,
      "norm_rel_ebd": "layer_norm", "position_biased_input": false, "type_vocab_size": 0,
      "pos_att_type": "p2c|c2p", "vocab_size": 128100})"),
            183831552);
  EXPECT_EQ(weights(R"({"model_type": "modernbert", "vocab_size": 50368})"), 149014272);
  EXPECT_EQ(weights(R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_inner": 3072, "n_positions": 8192, "activation_function": "swiglu",
      "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
      "type_vocab_size": 2, "vocab_size": 30528})"),
            136731648);
}

TEST(EncoderFromConfig, SaysThatBertIsCountedWithoutItsHead) {
  const Architecture a = read(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})");
  EXPECT_FALSE(a.causal || a.has_head || a.final_norm);
  EXPECT_EQ(a.max_positions, 512);
  EXPECT_TRUE(notes(a, "counted: encoder and pooler, no head (bert)"));
  EXPECT_TRUE(notes(a, "hidden_size = 768 (bert)"));
}

TEST(EncoderFromConfig, RobertasFirstPositionsAreNoTokens) {
  const Architecture a = read(R"({"model_type": "roberta", "max_position_embeddings": 514})");
  EXPECT_EQ(a.position_rows, 514);
  EXPECT_EQ(a.max_positions, 512);
}

TEST(EncoderFromConfig, ModernBertSeesFarInEveryThirdLayer) {
  const Architecture a = read(R"({"model_type": "modernbert"})");
  ASSERT_GE(a.runs.size(), 3u);
  EXPECT_EQ(a.runs[0].kind.window, 0);
  EXPECT_EQ(a.runs[0].count, 1);
  EXPECT_EQ(a.runs[1].kind.window, 128);
  EXPECT_EQ(a.runs[1].count, 2);
  EXPECT_EQ(a.runs[2].kind.window, 0);
}

TEST(EncoderFromConfig, CountsImageEncoders) {
  EXPECT_EQ(weights(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"],
      "num_labels": 1000})"),
            86567656);
  EXPECT_EQ(weights(R"({"model_type": "vit", "architectures": ["ViTModel"]})"), 86389248);
  EXPECT_EQ(weights(R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096, "num_labels": 1000})"),
            304326632);
  EXPECT_EQ(weights(R"({"model_type": "deit", "num_labels": 1000,
      "architectures": ["DeiTForImageClassificationWithTeacher"]})"),
            87338192);
  EXPECT_EQ(weights(R"({"model_type": "beit", "num_labels": 1000, "use_mask_token": false,
      "use_relative_position_bias": true, "architectures": ["BeitForImageClassification"]})"),
            86530984);
  EXPECT_EQ(weights(R"({"model_type": "dinov2", "image_size": 518})"), 86580480);
  EXPECT_EQ(weights(R"({"model_type": "dinov2", "image_size": 518, "hidden_size": 1536,
      "num_hidden_layers": 40, "num_attention_heads": 24, "use_swiglu_ffn": true})"),
            1136480768);
}

TEST(EncoderFromConfig, TakesClassesFromTheirNames) {
  const std::string named = R"({"model_type": "vit",
      "id2label": {"0": "cat", "1": "dog", "2": "hen"}})";
  const std::string numbered = R"({"model_type": "vit", "num_labels": 3})";
  EXPECT_EQ(weights(named), weights(numbered));
}

TEST(EncoderFromConfig, CountsEncodersOfImagesAndText) {
  EXPECT_EQ(weights(R"({"model_type": "clip"})"), 151277313);
  EXPECT_EQ(weights(R"({"model_type": "clip", "projection_dim": 768,
      "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
      "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                        "num_attention_heads": 16, "patch_size": 14}})"),
            427616513);
  EXPECT_EQ(weights(R"({"model_type": "siglip",
      "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
                      "vocab_size": 32000, "max_position_embeddings": 64},
      "vision_config": {"patch_size": 16}})"),
            203155970);
}

TEST(EncoderFromConfig, ClipHasTwoStacks) {
  const Architecture a = read(R"({"model_type": "clip"})");
  EXPECT_TRUE(a.causal);
  EXPECT_FALSE(a.has_head);
  ASSERT_EQ(a.towers.size(), 1u);
  EXPECT_EQ(a.towers[0].tokens, 50);  // 7 x 7 patches and a class token
  EXPECT_EQ(a.towers[0].tokens_out, 1);
  EXPECT_TRUE(notes(a, "vision_config.patch_size = 32 (clip_vision_model)"));
}

TEST(EncoderFromConfig, CountsT5AndItsKin) {
  EXPECT_EQ(weights(R"({"model_type": "t5"})"), 60506624);
  EXPECT_EQ(weights(R"({"model_type": "t5", "d_model": 768, "num_heads": 12, "num_layers": 12,
      "d_ff": 3072})"),
            222903552);
  EXPECT_EQ(weights(R"({"model_type": "t5", "d_model": 1024, "num_heads": 16, "num_layers": 24,
      "d_ff": 4096})"),
            737668096);
  EXPECT_EQ(weights(R"({"model_type": "t5", "d_model": 1024, "num_heads": 128, "d_kv": 128,
      "num_layers": 24, "d_ff": 65536})"),
            11307321344);
  EXPECT_EQ(weights(R"({"model_type": "t5", "d_model": 2048, "num_heads": 32, "num_layers": 24,
      "d_ff": 5120, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"),
            2849757184);
  EXPECT_EQ(weights(R"({"model_type": "mt5"})"), 300176768);
}

TEST(EncoderFromConfig, CountsT5sEncoderAlone) {
  const Architecture a = read(R"({"model_type": "t5", "architectures": ["T5EncoderModel"],
      "d_model": 4096, "num_heads": 64, "num_layers": 24, "d_ff": 10240,
      "feed_forward_proj": "gated-gelu"})");
  EXPECT_EQ(test_weights(a), 4762310656);  // version 1.1 XXL
  EXPECT_TRUE(a.towers.empty());
  EXPECT_FALSE(a.causal || a.has_head);
}

TEST(EncoderFromConfig, CountsBartAndItsKin) {
  EXPECT_EQ(weights(R"({"model_type": "bart"})"), 406291456);
  EXPECT_EQ(weights(R"({"model_type": "bart", "d_model": 768, "encoder_layers": 6,
      "decoder_layers": 6, "encoder_attention_heads": 12, "decoder_attention_heads": 12,
      "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072})"),
            139420416);
  EXPECT_EQ(weights(R"({"model_type": "mbart", "vocab_size": 250054})"), 610879488);
  EXPECT_EQ(weights(R"({"model_type": "pegasus", "vocab_size": 96103, "encoder_layers": 16,
      "decoder_layers": 16})"),
            568699904);
  EXPECT_EQ(weights(R"({"model_type": "m2m_100", "vocab_size": 256206})"), 615073792);
}

TEST(EncoderFromConfig, CountsWhisper) {
  EXPECT_EQ(weights(R"({"model_type": "whisper"})"), 37760640);
  EXPECT_EQ(weights(R"({"model_type": "whisper", "vocab_size": 51866, "num_mel_bins": 128,
      "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32, "encoder_ffn_dim": 5120,
      "decoder_ffn_dim": 5120, "encoder_attention_heads": 20, "decoder_attention_heads": 20})"),
            1543490560);
}

TEST(EncoderFromConfig, CountsWav2Vec2AndHubert) {
  EXPECT_EQ(weights(R"({"model_type": "hubert"})"), 94371712);
  EXPECT_EQ(weights(R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]})"),
            94396320);
  EXPECT_EQ(weights(R"({"model_type": "wav2vec2", "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096, "conv_bias": true,
      "feat_extract_norm": "layer", "do_stable_layer_norm": true})"),
            315438720);
}

TEST(EncoderFromConfig, AnEncoderDecoderWritesFromATower) {
  const Architecture a = read(R"({"model_type": "t5", "num_layers": 6, "num_decoder_layers": 2})");
  EXPECT_TRUE(a.causal && a.has_head && a.tied_embeddings);
  EXPECT_EQ(a.layers, 2);
  ASSERT_EQ(a.runs.size(), 1u);
  EXPECT_TRUE(a.runs[0].kind.cross_attention);
  EXPECT_EQ(a.runs[0].count, 2);
  ASSERT_EQ(a.towers.size(), 1u);
  EXPECT_EQ(a.towers[0].stack.layers, 6);
  EXPECT_TRUE(a.towers[0].shares_embedding);
  EXPECT_FALSE(a.towers[0].stack.causal);
  EXPECT_FALSE(a.towers[0].stack.has_head);
}

TEST(EncoderFromConfig, RefusesImpossibleShapes) {
  EXPECT_EQ(refusal(R"({"model_type": "bert", "num_attention_heads": 7})"),
            "config.json: num_attention_heads: 7 heads do not divide the width 768");
  EXPECT_EQ(refusal(R"({"model_type": "bert", "num_hidden_layers": 0})"),
            "config.json: num_hidden_layers: must be between 1 and 10000, got 0");
  EXPECT_EQ(refusal(R"({"model_type": "vit", "patch_size": 300})"),
            "config.json: patch_size: a patch is larger than the image");
  EXPECT_EQ(refusal(R"({"model_type": "vit", "image_size": [224]})"),
            "config.json: image_size: expected a side or [height, width], got an array");
  EXPECT_EQ(refusal(R"({"model_type": "t5", "feed_forward_proj": "gated-tanh"})"),
            "config.json: feed_forward_proj: the activation \"tanh\" is not supported in t5");
  EXPECT_EQ(refusal(R"({"model_type": "t5", "num_heads": 10000000, "d_kv": 10000000,
      "d_model": 10000000})"),
            "config.json: such a model would have more than 1e18 weights");
  EXPECT_EQ(refusal(R"({"model_type": "wav2vec2", "conv_dim": [512, 512]})"),
            "config.json: conv_kernel: must be as long as conv_dim");
  EXPECT_EQ(refusal(R"({"model_type": "wav2vec2", "conv_kernel": []})"),
            "config.json: conv_kernel: must list 1 to 64 numbers, each from 1 to 1024");
  EXPECT_EQ(refusal(R"({"model_type": "electra"})"),
            "config.json: embedding_size: embeddings of another width than hidden_size are not "
            "supported");
  EXPECT_EQ(refusal(R"({"model_type": "clip", "vision_config": {"hidden_size": "wide"}})"),
            "config.json: vision_config.hidden_size: expected an integer, got \"wide\"");
}

}  // namespace
}  // namespace orrery

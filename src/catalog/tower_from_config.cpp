#include "catalog/tower_from_config.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/config_values.h"
#include "catalog/encoder_decoders.h"
#include "catalog/vision_towers.h"
#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

// Joins a tower to a text stack as its wrapper's code does (huggingface/transformers,
// models/<model_type>).
using Wrapper = Tower (*)(ConfigValues& config, const Architecture& text);

// A tower that any of several wrappers may look through.
Tower vision_of(ConfigValues& config, const std::string& fallback) {
  const std::string family = config.family_under("vision_config", fallback);
  ConfigValues values = config.nested("vision_config", family);
  if (family == "clip_vision_model") return clip_vision(values);
  if (family == "siglip_vision_model") return siglip_vision(values, false);
  if (family == "pixtral") return pixtral_vision(values);
  values.fields().fail("model_type", "the tower " + in_quotes(family) + " is not supported",
                       "towers are: clip_vision_model, siglip_vision_model, pixtral");
}

void add_weights(Tower& tower, std::string name, std::int64_t count) {
  tower.stack.extra.emplace_back(std::move(name), count);
}

// Of `merge` x `merge` tokens one is made.
void merge_tokens(Tower& tower, ConfigValues& values, std::string_view key, std::int64_t merge) {
  tower.tokens_out /= merge * merge;
  if (tower.tokens_out < 1) values.fields().fail(key, "merges all patches into less than one");
}

// A layer's number, or several whose outputs stand side by side.
std::int64_t feature_layers(ConfigValues& config) {
  const Json* json = config.fields().optional_json("vision_feature_layer");
  if (!json || !json->is_array()) return 1;
  const auto most = std::size_t{10'000};
  if (json->size() == 0 || json->size() > most) {
    config.fields().fail("vision_feature_layer", "must name 1 to 10000 layers");
  }
  return static_cast<std::int64_t>(json->size());
}

// Liu et al. 2023 (arXiv 2310.03744): a feed-forward of two matrices. The tower's last layers are
// unused if features come from an earlier one; they are there and count.
Tower llava(ConfigValues& config, const Architecture& text) {
  Tower tower = vision_of(config, "clip_vision_model");
  if (tower.stack.family != "pixtral") {
    const std::string tokens = config.text("vision_feature_select_strategy", "default");
    tower.tokens_out = tower.tokens - (tokens == "default" ? 1 : 0);
  }
  const bool bias = config.flag("multimodal_projector_bias", true);
  const std::int64_t in = tower.stack.hidden * feature_layers(config);
  tower.projector = {{in, text.hidden, bias}, {text.hidden, text.hidden, bias}};
  return tower;
}

// A vector ends each row of patches. Tokens are those of one tile; an image has up to five.
Tower llava_next(ConfigValues& config, const Architecture& text) {
  Tower tower = llava(config, text);
  add_weights(tower, "end of row", text.hidden);
  config.note("an image of one tile");
  return tower;
}

Tower vip_llava(ConfigValues& config, const Architecture& text) {
  Tower tower = vision_of(config, "clip_vision_model");
  const Json* layers = config.fields().optional_json("vision_feature_layers");
  if (!layers) config.note("vision_feature_layers: 5");
  if (layers && (!layers->is_array() || layers->size() == 0 || layers->size() > 10'000)) {
    config.fields().fail("vision_feature_layers", "must name 1 to 10000 layers");
  }
  const std::int64_t count = layers ? static_cast<std::int64_t>(layers->size()) : 5;
  const std::int64_t in = tower.stack.hidden * count;
  tower.projector = {{in, text.hidden, true}, {text.hidden, text.hidden, true}};
  add_weights(tower, "projector norm", 2 * in);
  return tower;
}

Tower paligemma(ConfigValues& config, const Architecture& text) {
  Tower tower = vision_of(config, "siglip_vision_model");
  tower.projector = {{tower.stack.hidden, text.hidden, true}};
  return tower;
}

// Patches are averaged to mm_tokens_per_image before the matrix.
Tower gemma3(ConfigValues& config, const Architecture& text) {
  Tower tower = vision_of(config, "siglip_vision_model");
  tower.tokens_out = config.rows({"mm_tokens_per_image"}, 256);
  if (tower.tokens_out > tower.tokens) {
    config.fields().fail("mm_tokens_per_image", "is more than the " + std::to_string(tower.tokens) +
                                                    " patches of an image");
  }
  add_weights(tower, "projector norm", tower.stack.hidden);
  tower.projector = {{tower.stack.hidden, text.hidden, false}};
  return tower;
}

Tower llama4(ConfigValues& config, const Architecture& text) {
  ConfigValues values = config.nested("vision_config", "llama4_vision_model");
  Tower tower = llama4_vision(values);
  const std::int64_t out = values.width({"vision_output_dim"}, 7680);
  tower.projector.push_back({out, text.hidden, false});
  return tower;
}

Tower mistral3(ConfigValues& config, const Architecture& text) {
  Tower tower = vision_of(config, "pixtral");
  const std::int64_t hidden = tower.stack.hidden;
  const std::int64_t merge = config.small({"spatial_merge_size"}, 2);
  merge_tokens(tower, config, "spatial_merge_size", merge);
  add_weights(tower, "projector norm", hidden);
  const bool bias = config.flag("multimodal_projector_bias", false);
  tower.projector = {{hidden * merge * merge, hidden, false},
                     {hidden * feature_layers(config), text.hidden, bias},
                     {text.hidden, text.hidden, bias}};
  return tower;
}

// Laurençon et al. 2024 (arXiv 2405.02246): a gated feed-forward to the text's width, then latents
// that ask the patches for what they hold (a perceiver), all without biases.
Tower idefics2(ConfigValues& config, const Architecture& text) {
  ConfigValues vision = config.nested("vision_config", "idefics2_vision");
  ConfigValues perceiver = config.nested("perceiver_config", "idefics2_perceiver");
  Tower tower = idefics_vision(vision);
  const std::int64_t hidden = text.hidden, ffn = text.ffn;
  tower.projector = {{tower.stack.hidden, 2 * ffn, false}, {ffn, hidden, false}};
  const std::int64_t layers = perceiver.layers({"resampler_depth"}, 3);
  const std::int64_t width = perceiver.small({"resampler_head_dim"}, 96);
  const std::int64_t queries = perceiver.small({"resampler_n_heads"}, 16) * width;
  const std::int64_t keys = perceiver.small({"num_key_value_heads"}, 4) * width;
  tower.tokens_out = perceiver.rows({"resampler_n_latents"}, 64);
  const std::int64_t layer = hidden * (2 * queries + 2 * keys) + 3 * hidden * 4 * hidden;
  if (static_cast<double>(layers) * static_cast<double>(hidden) * static_cast<double>(hidden) >
      1e15) {
    perceiver.fields().fail("resampler_depth",
                            "is too deep for a text stack as wide as " + std::to_string(hidden));
  }
  add_weights(tower, "resampler", layers * (layer + 3 * hidden) + hidden);
  add_weights(tower, "latents", tower.tokens_out * hidden);
  return tower;
}

// Laurençon et al. 2024 (arXiv 2408.12637), section 3.1: pixel shuffle and one matrix.
Tower idefics3(ConfigValues& config, const Architecture& text) {
  ConfigValues vision = config.nested("vision_config", "idefics3_vision");
  Tower tower = idefics_vision(vision);
  const std::int64_t factor = config.small({"scale_factor"}, 2);
  merge_tokens(tower, config, "scale_factor", factor);
  tower.projector = {{tower.stack.hidden * factor * factor, text.hidden, false}};
  return tower;
}

// Pixel shuffle, a norm and a feed-forward gated by silu.
Tower aya_vision(ConfigValues& config, const Architecture& text) {
  Tower tower = vision_of(config, "siglip_vision_model");
  const std::int64_t factor = config.small({"downsample_factor"}, 2);
  merge_tokens(tower, config, "downsample_factor", factor);
  const std::int64_t in = tower.stack.hidden * factor * factor;
  const std::int64_t inner = config.width({"alignment_intermediate_size"}, text.hidden);
  add_weights(tower, "projector norm", 2 * in);
  tower.projector = {{in, inner, true}, {inner / 2, text.hidden, true}};
  return tower;
}

Tower mllama(ConfigValues& config, const Architecture& text) {
  ConfigValues values = config.nested("vision_config", "mllama_vision_model");
  Tower tower = mllama_vision(values);
  tower.projector = {{values.width({"vision_output_dim"}, 7680), text.hidden, true}};
  return tower;
}

Tower glm4v(ConfigValues& config, const Architecture&) {
  ConfigValues values = config.nested("vision_config", config.family());
  return glm4v_vision(values);
}

// Pixel shuffle by downsample_ratio, a norm and two matrices.
Tower intern(ConfigValues& config, const Architecture& text) {
  const char* kind = config.family() == "internvl" ? "internvl_vision" : "intern_vit_6b";
  ConfigValues vision = config.nested("vision_config", kind);
  Tower tower = intern_vision(vision);
  const auto fold = std::llround(1 / config.ratio("downsample_ratio", 0.5));
  if (fold < 1 || fold > 64) {
    config.fields().fail("downsample_ratio", "must be between 1/64 and 1");
  }
  merge_tokens(tower, config, "downsample_ratio", fold);
  const std::int64_t merged = tower.stack.hidden * fold * fold;
  add_weights(tower, "projector norm", 2 * merged);
  tower.projector = {{merged, text.hidden, true}, {text.hidden, text.hidden, true}};
  return tower;
}

Tower qwen2_vl(ConfigValues& config, const Architecture&) {
  ConfigValues values = config.nested("vision_config", config.family());
  return qwen2_vision(values);
}

Tower qwen2_5_vl(ConfigValues& config, const Architecture&) {
  ConfigValues values = config.nested("vision_config", config.family());
  return qwen2_5_vision(values);
}

Tower qwen3_vl(ConfigValues& config, const Architecture&) {
  ConfigValues values = config.nested("vision_config", config.family());
  return qwen3_vision(values);
}

// CLIP ViT-L/14 at 336 pixels, which the code beside the weights builds whatever img_processor says
// but its name; 2 x 2 patches become one token, and a vector ends each row and each tile. Tokens
// are those of one tile.
Tower phi3_v(ConfigValues& config, const Architecture& text) {
  ConfigValues processor = config.nested("img_processor", config.family());
  const std::string kind = processor.text("name", "clip_vision_model");
  if (kind != "clip_vision_model") {
    processor.fields().fail("name", "the tower " + in_quotes(kind) + " is not supported",
                            "it can be clip_vision_model");
  }
  const Json large = Json::object({{"hidden_size", 1024},
                                   {"intermediate_size", 4096},
                                   {"num_hidden_layers", 24},
                                   {"num_attention_heads", 16},
                                   {"image_size", 336},
                                   {"patch_size", 14}});
  const FieldPlace& where = config.fields().where();
  ConfigValues vision(Fields(large, where.place, "img_processor"), kind, config.defaults());
  config.note("img_processor is CLIP ViT-L/14 at 336 pixels");
  config.note("an image of one tile");
  Tower tower = clip_vision(vision);
  merge_tokens(tower, config, "img_processor", 2);
  const std::int64_t merged = 4 * tower.stack.hidden;
  add_weights(tower, "ends of row and tile", 2 * merged);
  tower.projector = {{merged, text.hidden, true}, {text.hidden, text.hidden, true}};
  return tower;
}

// Chu et al. 2024 (arXiv 2407.10759), section 2: Whisper's encoder; two frames become one token.
Tower qwen2_audio(ConfigValues& config, const Architecture& text) {
  ConfigValues values = config.nested("audio_config", "qwen2_audio_encoder");
  Tower tower = whisper_encoder(
      values, {.shape = {.layers = 32, .hidden = 1280, .heads = 20, .ffn = 5120}, .mel_bins = 128});
  tower.tokens_out = (tower.tokens + 1) / 2;
  tower.projector = {{tower.stack.hidden, text.hidden, true}};
  return tower;
}

struct WrapperFamily {
  std::string_view name;  // the Hugging Face model_type
  std::string_view key;   // of the tower's configuration
  Wrapper tower;
};

constexpr WrapperFamily known_wrappers[] = {
    {"aya_vision", "vision_config", aya_vision},
    {"gemma3", "vision_config", gemma3},
    {"glm4v", "vision_config", glm4v},
    {"glm4v_moe", "vision_config", glm4v},
    {"idefics2", "vision_config", idefics2},
    {"idefics3", "vision_config", idefics3},
    {"internvl", "vision_config", intern},
    {"internvl_chat", "vision_config", intern},
    {"llama4", "vision_config", llama4},
    {"llava", "vision_config", llava},
    {"llava_next", "vision_config", llava_next},
    {"llava_next_video", "vision_config", llava_next},
    {"llava_onevision", "vision_config", llava_next},
    {"mistral3", "vision_config", mistral3},
    {"mllama", "vision_config", mllama},
    {"paligemma", "vision_config", paligemma},
    {"phi3_v", "img_processor", phi3_v},
    {"qwen2_5_vl", "vision_config", qwen2_5_vl},
    {"qwen2_audio", "audio_config", qwen2_audio},
    {"qwen2_vl", "vision_config", qwen2_vl},
    {"qwen3_vl", "vision_config", qwen3_vl},
    {"qwen3_vl_moe", "vision_config", qwen3_vl},
    {"smolvlm", "vision_config", idefics3},
    {"vipllava", "vision_config", vip_llava},
};

bool has_tower(const Json& config) {
  for (const std::string_view key : {"vision_config", "audio_config", "img_processor"}) {
    const Json* tower = config.find(key);
    if (tower && !tower->is_null()) return true;
  }
  return false;
}

const WrapperFamily* find_wrapper(std::string_view name) {
  for (const WrapperFamily& wrapper : known_wrappers) {
    if (wrapper.name == name) return &wrapper;
  }
  return nullptr;
}

[[noreturn]] void fail_unsupported(const Fields& fields, const std::string& name) {
  std::vector<std::string> names;
  for (const WrapperFamily& wrapper : known_wrappers) names.emplace_back(wrapper.name);
  fields.fail("model_type", "the towers of " + in_quotes(name) + " are not supported",
              "models with towers are: " + join(names));
}

}  // namespace

std::vector<Tower> towers_from_config(const Json& config, const Architecture& text,
                                      const std::string& place,
                                      std::vector<std::string>& defaults) {
  if (!has_tower(config)) return {};
  Fields fields(config, place);
  const auto name = fields.required<std::string>("model_type");
  const WrapperFamily* wrapper = find_wrapper(name);
  if (!wrapper) fail_unsupported(fields, name);
  fields.required_json(wrapper->key);
  ConfigValues values(std::move(fields), name, defaults);
  Tower tower = wrapper->tower(values, text);
  Architecture alone;
  alone.towers = {tower};
  refuse_too_many_weights(alone, place);
  return {std::move(tower)};
}

}  // namespace orrery

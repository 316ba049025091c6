#include "catalog/image_encoders.h"

#include <string>
#include <utility>

#include "catalog/image_patches.h"
#include "catalog/vision_towers.h"
#include "core/fields.h"

namespace orrery {
namespace {

constexpr StackShape vit_base = {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072};
constexpr ImageSizes vit_image = {.image = 224, .patch = 16};
constexpr std::int64_t most_classes = 10'000'000;

// From num_labels or the names of the classes; 0 if there is no word of classes.
std::int64_t read_classes(ConfigValues& values) {
  Fields& fields = values.fields();
  const auto given = fields.optional_in<std::int64_t>("num_labels", 0, most_classes);
  if (given) return *given;
  const auto names = fields.optional_nested("id2label");
  if (names) return static_cast<std::int64_t>(names->json().size());
  if (!values.is_built_for("ForImageClassification")) return 0;
  values.note("num_labels = 2");
  return 2;
}

std::int64_t class_head(std::int64_t width, std::int64_t classes) { return (width + 1) * classes; }

// Dosovitskiy et al. 2021 (arXiv 2010.11929).
Architecture vit_stack(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, vit_base);
  a.activation = values.activation("hidden_act", "gelu");
  a.qkv_bias = values.flag("qkv_bias", true);
  a.extra.emplace_back("class token", a.hidden);
  a.extra.emplace_back("patch bias", a.hidden);
  return a;
}

// Without classes it is the base model, which has a dense layer over its first token.
void add_head_or_pooler(Architecture& a, ConfigValues& values, std::int64_t heads = 1) {
  if (const std::int64_t classes = read_classes(values)) {
    a.extra.emplace_back("class head", heads * class_head(a.hidden, classes));
  } else {
    a.extra.emplace_back("pooler", class_head(a.hidden, a.hidden));
    values.note("counted: encoder and pooler, no class head");
  }
}

// Of keys alone there is no bias.
void drop_key_bias(Architecture& a) {
  if (!a.qkv_bias) return;
  a.qkv_bias = false;
  a.extra.emplace_back("query and value biases", 2 * a.layers * a.hidden);
}

// One number for each offset between patches and head, and three for the class token.
std::int64_t relative_bias(const Architecture& a, const ImagePatches& patches) {
  return a.heads * ((2 * patches.rows - 1) * (2 * patches.columns - 1) + 3);
}

// Gated by silu; the two matrices share a width of two thirds, in multiples of 8
// (facebookresearch/dinov2, swiglu_ffn).
std::int64_t dinov2_gated_width(double ffn) {
  return (static_cast<std::int64_t>(ffn * 2 / 3) + 7) / 8 * 8;
}

struct TextDefaults {
  std::int64_t vocab, positions;
  const char* activation;
};

Architecture text_stack(ConfigValues& values, const TextDefaults& fallback) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, {.layers = 12, .hidden = 512, .heads = 8, .ffn = 2048});
  a.activation = values.activation("hidden_act", fallback.activation);
  a.vocab = values.rows({"vocab_size"}, fallback.vocab);
  a.max_positions = a.position_rows = values.rows({"max_position_embeddings"}, fallback.positions);
  return a;
}

// CLIP's text sees only what precedes it (arXiv 2103.00020, section 2.4).
Architecture clip_text(ConfigValues& values) {
  Architecture a = text_stack(values, {49408, 77, "quick_gelu"});
  a.causal = true;
  return a;
}

}  // namespace

Architecture read_vit(ConfigValues& values) {
  Architecture a = vit_stack(values);
  add_head_or_pooler(a, values);
  return stack_alone(patch_tower(std::move(a), read_patches(values, vit_image), 1));
}

// Touvron et al. 2021 (arXiv 2012.12877): a second token learns from a teacher, with a head of its
// own in the model that keeps both.
Architecture read_deit(ConfigValues& values) {
  Architecture a = vit_stack(values);
  a.extra.emplace_back("distillation token", a.hidden);
  add_head_or_pooler(a, values, values.is_built_for("WithTeacher") ? 2 : 1);
  return stack_alone(patch_tower(std::move(a), read_patches(values, vit_image), 2));
}

// Bao et al. 2021 (arXiv 2106.08254): relative positions, scaled halves, and the mean of patches
// normed in place of a final norm.
Architecture read_beit(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, vit_base);
  a.activation = values.activation("hidden_act", "gelu");
  const ImagePatches patches = read_patches(values, vit_image);
  if (!values.flag("use_absolute_position_embeddings", false)) a.positions = Positions::none;
  a.extra.emplace_back("class token", a.hidden);
  a.extra.emplace_back("patch bias", a.hidden);
  drop_key_bias(a);
  if (values.flag("use_mask_token", false)) a.extra.emplace_back("mask token", a.hidden);
  if (values.fields().optional<double>("layer_scale_init_value", 0.1) > 0) {
    a.extra.emplace_back("layer scales", 2 * a.layers * a.hidden);
  }
  std::int64_t tables = values.flag("use_relative_position_bias", false) ? a.layers : 0;
  if (values.flag("use_shared_relative_position_bias", false)) ++tables;
  if (tables > 0) {
    a.extra.emplace_back("relative positions", tables * relative_bias(a, patches));
  }
  if (const std::int64_t classes = read_classes(values)) {
    a.extra.emplace_back("class head", class_head(a.hidden, classes));
  }
  return stack_alone(patch_tower(std::move(a), patches, 1));
}

// Oquab et al. 2023 (arXiv 2304.07193). A classifier reads the class token beside the mean of
// patches.
Architecture read_dinov2(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"num_hidden_layers"}, 12);
  a.hidden = values.width({"hidden_size"}, 768);
  a.heads = a.kv_heads = values.width({"num_attention_heads"}, 12);
  a.head_dim = head_width(values, "num_attention_heads", a.hidden, a.heads);
  const double ffn = static_cast<double>(a.hidden) * values.ratio("mlp_ratio", 4);
  a.activation = values.activation("hidden_act", "gelu");
  a.ffn = static_cast<std::int64_t>(ffn);
  if (values.flag("use_swiglu_ffn", false)) {
    a.activation = Activation::swiglu;
    a.ffn = dinov2_gated_width(ffn);
  }
  a.qkv_bias = values.flag("qkv_bias", true);
  a.extra.emplace_back("class token", a.hidden);
  a.extra.emplace_back("mask token", a.hidden);
  a.extra.emplace_back("patch bias", a.hidden);
  a.extra.emplace_back("layer scales", 2 * a.layers * a.hidden);
  const bool has_registers = values.family() == "dinov2_with_registers";
  const std::int64_t registers = has_registers ? values.small({"num_register_tokens"}, 4, 0) : 0;
  if (registers > 0) a.extra.emplace_back("register tokens", registers * a.hidden);
  if (values.is_built_for("ForImageClassification")) {
    a.extra.emplace_back("class head", class_head(2 * a.hidden, read_classes(values)));
  }
  return stack_alone(
      patch_tower(std::move(a), read_patches(values, {.image = 224, .patch = 14}), 1));
}

Architecture read_clip(ConfigValues& values) {
  ConfigValues text = values.nested("text_config", "clip_text_model");
  ConfigValues vision = values.nested("vision_config", "clip_vision_model");
  const std::int64_t shared = values.width({"projection_dim"}, 512);
  Architecture a = clip_text(text);
  a.name = a.family = values.family();
  a.extra.emplace_back("text projection", a.hidden * shared);
  a.extra.emplace_back("logit scale", 1);
  Tower tower = clip_vision(vision);
  tower.tokens_out = 1;  // the class token
  tower.projector = {{tower.stack.hidden, shared, false}};
  a.towers.push_back(std::move(tower));
  return a;
}

Architecture read_clip_text(ConfigValues& values) {
  Architecture a = clip_text(values);
  if (values.is_built_for("WithProjection")) {
    a.extra.emplace_back("text projection", a.hidden * values.width({"projection_dim"}, 512));
  }
  return a;
}

Architecture read_clip_vision(ConfigValues& values) {
  Architecture a = stack_alone(clip_vision(values));
  if (values.is_built_for("WithProjection")) {
    a.extra.emplace_back("projection", a.hidden * values.width({"projection_dim"}, 512));
  }
  return a;
}

Architecture read_siglip(ConfigValues& values) {
  ConfigValues text = values.nested("text_config", "siglip_text_model");
  ConfigValues vision = values.nested("vision_config", "siglip_vision_model");
  Architecture a = text_stack(text, {32000, 64, "gelu_pytorch_tanh"});
  a.name = a.family = values.family();
  const std::int64_t out = text.width({"projection_size"}, a.hidden);
  a.extra.emplace_back("text projection", (a.hidden + 1) * out);
  a.extra.emplace_back("logit scale and bias", 2);
  Tower tower = siglip_vision(vision, true);
  tower.tokens_out = 1;  // the pooled one
  a.towers.push_back(std::move(tower));
  return a;
}

Architecture read_siglip_vision(ConfigValues& values) {
  return stack_alone(siglip_vision(values, true));
}

}  // namespace orrery

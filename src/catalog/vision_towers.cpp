#include "catalog/vision_towers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "catalog/image_patches.h"

namespace orrery {
namespace {

Architecture vision_stack(ConfigValues& values, const StackShape& shape, const char* activation) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, shape);
  a.activation = values.activation("hidden_act", activation);
  return a;
}

// One token asks all patches (Zhai et al. 2022, arXiv 2106.04560, section 2): a query, attention, a
// norm and a feed-forward.
std::int64_t attention_pooling(const Architecture& a) {
  const std::int64_t attention = 4 * a.hidden * (a.hidden + 1);
  return a.hidden + attention + 2 * a.hidden + a.hidden * (2 * a.ffn + 1) + a.ffn;
}

Tower siglip_like(ConfigValues& values, const ImageSizes& sizes) {
  Architecture a = vision_stack(values, {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072},
                                "gelu_pytorch_tanh");
  a.extra.emplace_back("patch bias", a.hidden);
  return patch_tower(std::move(a), read_patches(values, sizes));
}

struct QwenSizes {
  std::int64_t patch, merge, frames, channels;
};

// Qwen's images have no fixed size; its preprocessor's limit is max_pixels.
constexpr std::int64_t qwen_merged_tokens = 1280;

Tower qwen_tower(Architecture stack, ConfigValues& values, const QwenSizes& s) {
  Tower tower;
  tower.name = "vision";
  tower.patch = s.channels * s.frames * s.patch * s.patch;
  tower.tokens_out = qwen_merged_tokens;
  tower.tokens = tower.tokens_out * s.merge * s.merge;
  values.note("an image of max_pixels = " + std::to_string(tower.tokens * s.patch * s.patch));
  tower.stack = std::move(stack);
  tower.stack.max_positions = tower.tokens;
  return tower;
}

// Patches of `merge` x `merge` become one token, by two matrices.
void add_merger(Tower& tower, std::int64_t merge, std::int64_t out) {
  const std::int64_t merged = tower.stack.hidden * merge * merge;
  tower.projector = {{merged, merged, true}, {merged, out, true}};
}

QwenSizes read_qwen_sizes(ConfigValues& values, std::string_view channels, std::int64_t patch) {
  return {.patch = values.small({"patch_size"}, patch),
          .merge = values.small({"spatial_merge_size"}, 2),
          .frames = values.small({"temporal_patch_size"}, 2),
          .channels = values.small({channels, "in_chans"}, 3)};
}

std::vector<std::int64_t> read_layer_list(ConfigValues& values, std::string_view key,
                                          std::vector<std::int64_t> fallback, std::int64_t layers) {
  auto list = values.fields().optional<std::vector<std::int64_t>>(key);
  if (!list) {
    std::string text;
    for (const std::int64_t layer : fallback)
      text += (text.empty() ? "" : ", ") + std::to_string(layer);
    values.note(values.fields().where().key(key).path + " = [" + text + "]");
    list = std::move(fallback);
  }
  for (const std::int64_t layer : *list) {
    if (layer < 0 || layer >= layers) {
      values.fields().fail(key, "there is no layer " + std::to_string(layer) + " in a stack of " +
                                    std::to_string(layers));
    }
  }
  return *list;
}

// Layers see all patches where `global` lists them, else a window of them.
void set_windows(Architecture& a, const std::vector<std::int64_t>& global, std::int64_t window) {
  for (std::int64_t layer = 0; layer < a.layers; ++layer) {
    const bool sees_all = std::find(global.begin(), global.end(), layer) != global.end();
    const LayerKind kind = {.name = sees_all ? "global" : "local",
                            .window = sees_all ? 0 : window,
                            .chunked = !sees_all,
                            .ffn = a.ffn};
    if (!a.runs.empty() && a.runs.back().kind == kind) {
      ++a.runs.back().count;
    } else {
      a.runs.push_back({kind, 1});
    }
  }
}

}  // namespace

// Radford et al. 2021 (arXiv 2103.00020): a class token, and a norm before the layers too.
Tower clip_vision(ConfigValues& values) {
  Architecture a =
      vision_stack(values, {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072}, "quick_gelu");
  a.embedding_norm = true;
  a.extra.emplace_back("class token", a.hidden);
  return patch_tower(std::move(a), read_patches(values, {.image = 224, .patch = 32}), 1);
}

Tower siglip_vision(ConfigValues& values, bool has_head) {
  Tower tower = siglip_like(values, {.image = 224, .patch = 16});
  if (values.flag("vision_use_head", has_head)) {
    tower.stack.extra.emplace_back("attention pooling", attention_pooling(tower.stack));
  }
  return tower;
}

Tower idefics_vision(ConfigValues& values) {
  return siglip_like(values, {.image = 224, .patch = 32});
}

// Agrawal et al. 2024 (arXiv 2410.07073): built like a language model, with rotary positions.
Tower pixtral_vision(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, {.layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096});
  a.activation = values.activation("hidden_act", "gelu", true);
  a.norm = Norm::rms_norm;
  a.positions = Positions::rotary;
  a.qkv_bias = a.output_bias = a.mlp_bias = a.norm_bias = false;
  a.embedding_norm = true;
  a.final_norm = false;
  return patch_tower(std::move(a), read_patches(values, {.image = 1024, .patch = 16}));
}

// Two matrices follow pixel shuffle, which folds patches of 1 / ratio^2 into one token; their own
// inputs are intermediate_size wide.
Tower llama4_vision(ConfigValues& values) {
  Architecture a =
      vision_stack(values, {.layers = 34, .hidden = 768, .heads = 16, .ffn = 5632}, "gelu");
  a.embedding_norm = true;
  a.extra.emplace_back("class token", a.hidden);
  Tower tower = patch_tower(std::move(a), read_patches(values, {.image = 448, .patch = 14}), 1);
  const double ratio = values.ratio("pixel_shuffle_ratio", 0.5);
  tower.tokens_out = std::llround(static_cast<double>(tower.tokens_out) * ratio * ratio);
  const std::int64_t inner = values.width({"projector_input_dim"}, 4096);
  const std::int64_t out = values.width({"projector_output_dim"}, 4096);
  if (tower.tokens_out < 1) values.fields().fail("pixel_shuffle_ratio", "leaves no token");
  if (inner != out) {
    values.fields().fail("projector_output_dim",
                         "must be projector_input_dim, " + std::to_string(inner));
  }
  tower.projector = {{tower.stack.ffn, inner, false}, {out, out, false}};
  return tower;
}

namespace {

// The same stack under the keys of two configurations: the one beside OpenGVLab's weights, and
// that of huggingface/transformers.
struct InternKeys {
  StackShape shape;
  std::int64_t image;
  const char *qkv_bias, *qk_norm, *norm;
  bool has_qk_norm;
};

constexpr InternKeys intern_vit = {
    .shape = {.layers = 48, .hidden = 3200, .heads = 25, .ffn = 12800},
    .image = 224,
    .qkv_bias = "qkv_bias",
    .qk_norm = "qk_normalization",
    .norm = "rms_norm",
    .has_qk_norm = true};
constexpr InternKeys internvl_vision = {
    .shape = {.layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096},
    .image = 448,
    .qkv_bias = "attention_bias",
    .qk_norm = "use_qk_norm",
    .norm = "layer_norm",
    .has_qk_norm = false};

}  // namespace

// Chen et al. 2023 (arXiv 2312.14238): each half of a layer is scaled by a vector. 300M has layer
// norms; 6B has RMS norms, one on all queries together and one on all keys.
Tower intern_vision(ConfigValues& values) {
  const InternKeys& keys = values.family() == "internvl_vision" ? internvl_vision : intern_vit;
  Architecture a = vision_stack(values, keys.shape, "gelu");
  a.qkv_bias = values.flag(keys.qkv_bias, false);
  if (values.text("norm_type", keys.norm) == "rms_norm") {
    a.norm = Norm::rms_norm;
    a.norm_bias = false;
  }
  a.final_norm = false;
  a.extra.emplace_back("class token", a.hidden);
  a.extra.emplace_back("patch bias", a.hidden);
  a.extra.emplace_back("layer scales", 2 * a.layers * a.hidden);
  if (values.flag(keys.qk_norm, keys.has_qk_norm)) {
    a.extra.emplace_back("query and key norms", 2 * a.layers * a.hidden);
  }
  return patch_tower(std::move(a), read_patches(values, {.image = keys.image, .patch = 14}), 1);
}

namespace {

constexpr std::int64_t aspect_ratios = 8;  // of up to four tiles

std::int64_t read_aspect_ratios(ConfigValues& values) {
  const Json* list = values.fields().optional_json("supported_aspect_ratios");
  if (!list) return aspect_ratios;
  const FieldPlace where = values.fields().where().key("supported_aspect_ratios");
  if (!list->is_array() || list->size() == 0) where.fail_expected("a list of ratios", *list);
  return static_cast<std::int64_t>(list->size());
}

}  // namespace

// Llama 3.2: the tiles of an image are one sequence, and tables tell the tokens of a tile, and
// tiles of an aspect ratio, apart (row 0 is padding). Layers of a second stack have two gates.
// Their output and that of a few layers inside go, side by side, to the decoder's cross attention.
Tower mllama_vision(ConfigValues& values) {
  Architecture a =
      vision_stack(values, {.layers = 32, .hidden = 1280, .heads = 16, .ffn = 5120}, "gelu");
  a.qkv_bias = a.output_bias = false;
  a.embedding_norm = true;
  const std::int64_t global = values.layers({"num_global_layers"}, 8);
  a.layers += global;
  a.positions = Positions::none;
  const ImagePatches patches = read_patches(values, {.image = 448, .patch = 14});
  const std::int64_t tiles = values.small({"max_num_tiles"}, 4);
  const std::int64_t rows = read_aspect_ratios(values) + 1;
  const std::int64_t tile = patches.count() + 1;  // tokens
  a.extra.emplace_back("class token", a.hidden);
  a.extra.emplace_back("position table", tile * a.hidden + 1);
  if (static_cast<double>(rows * tiles) * static_cast<double>(tile) > 1e11) {
    values.fields().fail("supported_aspect_ratios", "makes a table of positions too large");
  }
  a.extra.emplace_back("position tables of tiles", rows * tiles * (tile + 2) * a.hidden + 2);
  a.extra.emplace_back("gates", 2 * global);
  Tower tower = patch_tower(std::move(a), patches);
  tower.tokens = tower.tokens_out = tower.stack.max_positions = tiles * tile;
  return tower;
}

// Positions are learned and rotary; a convolution of merge x merge patches, then a gated
// feed-forward as wide as intermediate_size, lead to the text. The layers' own feed-forward is
// out_hidden_size wide.
Tower glm4v_vision(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"depth"}, 24);
  a.hidden = values.width({"hidden_size"}, 1536);
  a.heads = a.kv_heads = values.width({"num_heads"}, 12);
  a.head_dim = head_width(values, "num_heads", a.hidden, a.heads);
  const std::int64_t out = values.width({"out_hidden_size"}, 4096);
  const std::int64_t inner = values.width({"intermediate_size"}, 13696);
  a.ffn = out;
  a.activation = values.activation("hidden_act", "silu", true);
  a.norm = Norm::rms_norm;
  a.norm_bias = a.output_bias = a.mlp_bias = false;
  a.qkv_bias = values.flag("attention_bias", false);
  a.embedding_norm = true;
  a.extra.emplace_back("patch bias", a.hidden);
  const std::int64_t frames = values.small({"temporal_patch_size"}, 2);
  const std::int64_t merge = values.small({"spatial_merge_size"}, 2);
  ImagePatches patches = read_patches(values, {.image = 336, .patch = 14});
  patches.inputs *= frames;
  Tower tower = patch_tower(std::move(a), patches);
  tower.tokens_out /= merge * merge;
  if (tower.tokens_out < 1) values.fields().fail("spatial_merge_size", "leaves no token");
  tower.stack.extra.emplace_back("merger norm", 2 * out);
  tower.projector = {{tower.stack.hidden * merge * merge, out, true},
                     {out, out, false},
                     {out, 2 * inner, false},
                     {inner, out, false}};
  return tower;
}

// Wang et al. 2024 (arXiv 2409.12191). hidden_size is what the merger puts out; the stack is
// embed_dim wide.
Tower qwen2_vision(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"depth"}, 32);
  a.hidden = values.width({"embed_dim"}, 1280);
  a.heads = a.kv_heads = values.width({"num_heads"}, 16);
  a.head_dim = head_width(values, "num_heads", a.hidden, a.heads);
  a.ffn = std::llround(static_cast<double>(a.hidden) * values.ratio("mlp_ratio", 4));
  a.activation = values.activation("hidden_act", "quick_gelu");
  a.positions = Positions::rotary;
  a.final_norm = true;  // the merger's
  const QwenSizes sizes = read_qwen_sizes(values, "in_channels", 14);
  Tower tower = qwen_tower(std::move(a), values, sizes);
  add_merger(tower, sizes.merge, values.width({"hidden_size"}, 3584));
  return tower;
}

// Bai et al. 2025 (arXiv 2502.13923), section 2.1: RMS norms, a gated feed-forward with biases, and
// windows of window_size pixels in all layers but a few.
Tower qwen2_5_vision(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"depth"}, 32);
  a.hidden = values.width({"hidden_size"}, 1280);
  a.heads = a.kv_heads = values.width({"num_heads"}, 16);
  a.head_dim = head_width(values, "num_heads", a.hidden, a.heads);
  a.ffn = values.width({"intermediate_size"}, 3420);
  a.activation = values.activation("hidden_act", "silu", true);
  a.positions = Positions::rotary;
  a.norm = Norm::rms_norm;
  a.norm_bias = false;
  const QwenSizes sizes = read_qwen_sizes(values, "in_channels", 14);
  const std::int64_t side = values.width({"window_size"}, 112) / sizes.patch;
  if (side < 1 || side > 100'000) {
    values.fields().fail("window_size", "must be from one patch to 100000 patches");
  }
  set_windows(a, read_layer_list(values, "fullatt_block_indexes", {7, 15, 23, 31}, a.layers),
              side * side);
  Tower tower = qwen_tower(std::move(a), values, sizes);
  add_merger(tower, sizes.merge, values.width({"out_hidden_size"}, 3584));
  return tower;
}

// Learned positions beside the rotary ones, and mergers that also take the output of a few layers
// inside (deepstack) to the main stack.
Tower qwen3_vision(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"depth"}, 27);
  a.hidden = values.width({"hidden_size"}, 1152);
  a.heads = a.kv_heads = values.width({"num_heads"}, 16);
  a.head_dim = head_width(values, "num_heads", a.hidden, a.heads);
  a.ffn = values.width({"intermediate_size"}, 4304);
  a.activation = values.activation("hidden_act", "gelu_pytorch_tanh");
  a.positions = Positions::rotary;
  a.extra.emplace_back("patch bias", a.hidden);
  const std::int64_t rows = values.rows({"num_position_embeddings"}, 2304);
  a.extra.emplace_back("learned positions", rows * a.hidden);
  const QwenSizes sizes = read_qwen_sizes(values, "in_channels", 16);
  const auto deep =
      read_layer_list(values, "deepstack_visual_indexes", {8, 16, 24}, a.layers).size();
  Tower tower = qwen_tower(std::move(a), values, sizes);
  add_merger(tower, sizes.merge, values.width({"out_hidden_size"}, 3584));
  const std::vector<Tower::Projection> merger = tower.projector;
  for (std::size_t i = 0; i < deep; ++i) {
    tower.projector.insert(tower.projector.end(), merger.begin(), merger.end());
    tower.stack.extra.emplace_back("deepstack merger norm", 2 * merger.front().in);
  }
  return tower;
}

}  // namespace orrery

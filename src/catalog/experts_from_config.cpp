#include "catalog/experts_from_config.h"

#include <algorithm>
#include <array>
#include <string>

#include "catalog/layer_lists.h"

namespace orrery {
namespace {

constexpr std::int64_t most_width = 10'000'000;
constexpr std::int64_t most_experts = 1'000'000;

using Key = std::string_view;

// A number under a key of the family, with what an absent key means; 0: it must be given.
struct Entry {
  Key key;
  std::int64_t fallback;
};

// Which layers have experts.
enum class Where {
  all,
  sparse_step,  // every decoder_sparse_step-th, but mlp_only_layers
  after_dense,  // from first_k_dense_replace on, every moe_layer_freq-th
  interleaved,  // moe_layers, or every interleave_moe_layer_step-th
  periodic,     // expert_layer_offset in every expert_layer_period
  between,      // moe_layer_start_index to moe_layer_end_index, every moe_layer_interval-th
  by_pattern,   // the family's own layer pattern says
};

struct ExpertFamily {
  std::string_view name;
  Entry count, top_k;
  Entry width = {"", 0};   // without a key: the width of a dense feed-forward
  Entry shared = {"", 0};  // experts of `width`, or their whole width where the key is one
  Where where = Where::all;
  std::int64_t first = 0;        // dense layers before them, by default
  std::int64_t least_count = 1;  // of fewer experts the layer is an ordinary one
  bool shared_gate = false, router_bias = false, correction_bias = false, bias = false;
};

// Source of each row: as in families.cpp.
constexpr std::array table = {
    ExpertFamily{.name = "deepseek",
                 .count = {"n_routed_experts", 64},
                 .top_k = {"num_experts_per_tok", 0},
                 .width = {"moe_intermediate_size", 1407},
                 .shared = {"n_shared_experts", 0},
                 .where = Where::after_dense},
    ExpertFamily{.name = "deepseek_v2",
                 .count = {"n_routed_experts", 64},
                 .top_k = {"num_experts_per_tok", 0},
                 .width = {"moe_intermediate_size", 1407},
                 .shared = {"n_shared_experts", 2},
                 .where = Where::after_dense},
    ExpertFamily{.name = "deepseek_v3",
                 .count = {"n_routed_experts", 256},
                 .top_k = {"num_experts_per_tok", 8},
                 .width = {"moe_intermediate_size", 2048},
                 .shared = {"n_shared_experts", 1},
                 .where = Where::after_dense,
                 .first = 3,
                 .correction_bias = true},
    ExpertFamily{.name = "dots1",
                 .count = {"n_routed_experts", 0},
                 .top_k = {"num_experts_per_tok", 0},
                 .width = {"moe_intermediate_size", 1408},
                 .shared = {"n_shared_experts", 0},
                 .where = Where::after_dense,
                 .correction_bias = true},
    ExpertFamily{.name = "ernie4_5_moe",
                 .count = {"moe_num_experts", 64},
                 .top_k = {"moe_k", 6},
                 .width = {"moe_intermediate_size", 1536},
                 .shared = {"moe_num_shared_experts", 2},
                 .where = Where::between,
                 .first = 1,
                 .correction_bias = true},
    ExpertFamily{.name = "glm4_moe",
                 .count = {"n_routed_experts", 128},
                 .top_k = {"num_experts_per_tok", 8},
                 .width = {"moe_intermediate_size", 1408},
                 .shared = {"n_shared_experts", 1},
                 .where = Where::after_dense,
                 .first = 1,
                 .correction_bias = true},
    ExpertFamily{.name = "gpt_oss",
                 .count = {"num_local_experts", 128},
                 .top_k = {"num_experts_per_tok", 4},
                 .router_bias = true,
                 .bias = true},
    ExpertFamily{.name = "granitemoe",
                 .count = {"num_local_experts", 8},
                 .top_k = {"num_experts_per_tok", 2}},
    ExpertFamily{.name = "granitemoehybrid",
                 .count = {"num_local_experts", 8},
                 .top_k = {"num_experts_per_tok", 2},
                 .shared = {"shared_intermediate_size", 1024}},
    ExpertFamily{.name = "granitemoeshared",
                 .count = {"num_local_experts", 8},
                 .top_k = {"num_experts_per_tok", 2},
                 .shared = {"shared_intermediate_size", 0}},
    ExpertFamily{
        .name = "grok-1", .count = {"num_experts", 8}, .top_k = {"num_experts_per_tok", 2}},
    ExpertFamily{.name = "hunyuan_v1_moe",
                 .count = {"num_experts", 1},
                 .top_k = {"moe_topk", 1},
                 .shared = {"num_shared_expert", 1},
                 .least_count = 2},
    ExpertFamily{.name = "jamba",
                 .count = {"num_experts", 16},
                 .top_k = {"num_experts_per_tok", 2},
                 .where = Where::periodic,
                 .least_count = 2},
    ExpertFamily{.name = "llama4_text",
                 .count = {"num_local_experts", 16},
                 .top_k = {"num_experts_per_tok", 1},
                 .width = {"intermediate_size", 8192},
                 .shared = {"", 1},
                 .where = Where::interleaved},
    ExpertFamily{.name = "minimax_m2",
                 .count = {"num_local_experts", 256},
                 .top_k = {"num_experts_per_tok", 8},
                 .correction_bias = true},
    ExpertFamily{
        .name = "mixtral", .count = {"num_local_experts", 8}, .top_k = {"num_experts_per_tok", 2}},
    ExpertFamily{.name = "nemotron_h",
                 .count = {"n_routed_experts", 8},
                 .top_k = {"num_experts_per_tok", 2},
                 .width = {"moe_intermediate_size", 7688},
                 .shared = {"moe_shared_expert_intermediate_size", 7688},
                 .where = Where::by_pattern,
                 .correction_bias = true},
    ExpertFamily{
        .name = "olmoe", .count = {"num_experts", 64}, .top_k = {"num_experts_per_tok", 8}},
    ExpertFamily{
        .name = "phimoe", .count = {"num_local_experts", 16}, .top_k = {"num_experts_per_tok", 2}},
    ExpertFamily{.name = "qwen2_moe",
                 .count = {"num_experts", 60},
                 .top_k = {"num_experts_per_tok", 4},
                 .width = {"moe_intermediate_size", 1408},
                 .shared = {"shared_expert_intermediate_size", 5632},
                 .where = Where::sparse_step,
                 .shared_gate = true},
    ExpertFamily{.name = "qwen3_moe",
                 .count = {"num_experts", 128},
                 .top_k = {"num_experts_per_tok", 8},
                 .width = {"moe_intermediate_size", 768},
                 .where = Where::sparse_step},
};

constexpr std::array count_keys = {Key("num_experts"), Key("num_local_experts"),
                                   Key("n_routed_experts"), Key("moe_num_experts")};

// What the configuration calls experts must not be lost.
void refuse_experts(DecoderValues& values, std::string_view family) {
  for (const Key key : count_keys) {
    if (values.find({key}, 0, most_experts).value_or(0) <= 1) continue;
    values.fail(key, "the family " + std::string(family) + " has no experts");
  }
}

std::int64_t given(DecoderValues& values, const Entry& entry, std::int64_t most) {
  if (entry.fallback > 0) {
    const auto value = values.find({entry.key}, 1, most);
    if (!value) values.note(std::string(entry.key) + " = " + std::to_string(entry.fallback));
    return value.value_or(entry.fallback);
  }
  return values.required_width({entry.key});
}

bool is_width(Key key) { return key.ends_with("intermediate_size"); }

std::int64_t shared_width(DecoderValues& values, const ExpertFamily& family, std::int64_t width) {
  const Entry& shared = family.shared;
  if (shared.key.empty()) return shared.fallback * width;
  const bool null = values.is_null({shared.key});
  const std::int64_t value = null ? 0 : values.count({shared.key}, shared.fallback);
  const std::int64_t all = is_width(shared.key) ? value : value * width;
  if (all > most_width) values.fail(shared.key, "shared experts wider than 10000000 together");
  return all;
}

std::vector<bool> sparse_step(DecoderValues& values, std::size_t layers) {
  const auto step = static_cast<std::size_t>(values.layers({"decoder_sparse_step"}, 1));
  std::vector<bool> has(layers);
  for (std::size_t i = 0; i < layers; ++i) has[i] = (i + 1) % step == 0;
  const auto dense =
      layer_indices(values, "mlp_only_layers", static_cast<std::int64_t>(layers), {});
  for (const std::size_t layer : dense) has[layer] = false;
  return has;
}

std::vector<bool> after_dense(DecoderValues& values, std::size_t layers, std::int64_t first) {
  const auto dense = static_cast<std::size_t>(values.count({"first_k_dense_replace"}, first));
  const auto every =
      static_cast<std::size_t>(values.find({"moe_layer_freq"}, 1, 10'000).value_or(1));
  std::vector<bool> has(layers);
  for (std::size_t i = dense; i < layers; ++i) has[i] = i % every == 0;
  return has;
}

std::vector<bool> interleaved(DecoderValues& values, std::size_t layers) {
  std::vector<bool> has(layers);
  if (values.fields().optional_json("moe_layers")) {
    for (const std::size_t layer :
         layer_indices(values, "moe_layers", static_cast<std::int64_t>(layers), {})) {
      has[layer] = true;
    }
    return has;
  }
  const auto step = static_cast<std::size_t>(values.layers({"interleave_moe_layer_step"}, 1));
  for (std::size_t i = step - 1; i < layers; i += step) has[i] = true;
  return has;
}

std::vector<bool> periodic(DecoderValues& values, std::size_t layers) {
  const auto period = static_cast<std::size_t>(values.layers({"expert_layer_period"}, 2));
  const auto offset = static_cast<std::size_t>(values.count({"expert_layer_offset"}, 1));
  std::vector<bool> has(layers);
  for (std::size_t i = 0; i < layers; ++i) has[i] = i % period == offset;
  return has;
}

std::vector<bool> between(DecoderValues& values, std::size_t layers, std::int64_t first) {
  const auto start = static_cast<std::size_t>(values.count({"moe_layer_start_index"}, first));
  const auto every = static_cast<std::size_t>(values.layers({"moe_layer_interval"}, 1));
  const auto end = values.find({"moe_layer_end_index"}, -1, most_width).value_or(-1);
  const std::size_t last = end < 0 ? layers : static_cast<std::size_t>(end) + 1;
  std::vector<bool> has(layers);
  for (std::size_t i = start; i < std::min(last, layers); ++i) has[i] = (i + 1) % every == 0;
  return has;
}

std::vector<bool> expert_places(DecoderValues& values, const ExpertFamily& family,
                                std::size_t layers) {
  switch (family.where) {
    case Where::all:
      return std::vector<bool>(layers, true);
    case Where::sparse_step:
      return sparse_step(values, layers);
    case Where::after_dense:
      return after_dense(values, layers, family.first);
    case Where::interleaved:
      return interleaved(values, layers);
    case Where::periodic:
      return periodic(values, layers);
    case Where::between:
      return between(values, layers, family.first);
    case Where::by_pattern:
      break;
  }
  return std::vector<bool>(layers, false);
}

bool pattern_has_experts(DecoderValues& values) {
  const auto pattern = values.fields().optional<std::string>("hybrid_override_pattern");
  return pattern.value_or("").find('E') != std::string::npos;
}

Experts shape_of_experts(DecoderValues& values, const ExpertFamily& family, const Architecture& a,
                         std::int64_t count) {
  Experts e;
  e.count = count;
  e.top_k = given(values, family.top_k, most_experts);
  e.width = family.width.key.empty() ? a.ffn : given(values, family.width, most_width);
  e.shared_width = shared_width(values, family, e.width);
  e.shared_gate = family.shared_gate && e.shared_width > 0;
  e.router_bias = family.router_bias;
  e.correction_bias = family.correction_bias;
  e.bias = family.bias;
  if (e.top_k > e.count) {
    values.fail(family.top_k.key,
                std::to_string(e.top_k) + " active experts of " + std::to_string(e.count));
  }
  return e;
}

// DBRX nests what the others have at the top.
void read_dbrx_experts(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  ConfigValues ffn = values.nested("ffn_config", values.family());
  a.experts.count = ffn.width({"moe_num_experts"}, 4);
  a.experts.top_k = ffn.width({"moe_top_k"}, 1);
  a.experts.width = a.ffn;
  if (a.experts.top_k > a.experts.count) {
    ffn.fields().fail("moe_top_k", std::to_string(a.experts.top_k) + " active experts of " +
                                       std::to_string(a.experts.count));
  }
  for (LayerKind& kind : kinds) {
    kind.experts = true;
    kind.ffn = 0;
  }
}

}  // namespace

void read_experts(DecoderValues& values, std::string_view family, Architecture& a,
                  std::vector<LayerKind>& kinds) {
  if (family == "dbrx") return read_dbrx_experts(values, a, kinds);
  const auto row = std::ranges::find(table, family, &ExpertFamily::name);
  if (row == table.end()) return refuse_experts(values, family);
  if (row->where == Where::by_pattern && !pattern_has_experts(values)) return;

  const auto count = values.find(
      {row->count.key, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
      0, most_experts);
  const bool null = values.is_null({row->count.key});
  if (!count && !null) {
    values.note(std::string(row->count.key) + " = " + std::to_string(row->count.fallback));
  }
  const std::int64_t experts = count.value_or(null ? 0 : row->count.fallback);
  if (experts < row->least_count) return;

  const std::vector<bool> places = expert_places(values, *row, kinds.size());
  const bool any = std::ranges::find(places, true) != places.end();
  if (!any && row->where != Where::by_pattern) return;
  a.experts = shape_of_experts(values, *row, a, experts);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (!places[i]) continue;
    kinds[i].experts = true;
    kinds[i].ffn = 0;
  }
}

}  // namespace orrery

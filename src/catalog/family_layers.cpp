#include "catalog/family_layers.h"

#include <optional>
#include <string>
#include <string_view>

#include "catalog/layer_lists.h"
#include "core/text.h"

namespace orrery {
namespace {

constexpr std::int64_t most_width = 10'000'000;
constexpr std::int64_t most_conv = 1024;

// A rank of "auto" is a sixteenth of the width, rounded up (arXiv 2312.00752, section 3.6).
std::int64_t time_step_rank(DecoderValues& values, std::string_view key, std::int64_t hidden) {
  const Json* json = values.fields().optional_json(key);
  const std::int64_t automatic = (hidden + 15) / 16;
  if (json && json->is_string() && json->as_string() == "auto") return automatic;
  return values.width({key}, automatic);
}

std::int64_t inner_width(DecoderValues& values, std::string_view expand, std::int64_t hidden) {
  return hidden * values.small({expand}, 2);
}

void read_selective_scan(DecoderValues& values, Architecture& a) {
  StateSpace& s = a.state_space;
  const auto inner = values.find({"intermediate_size"}, 1, most_width);
  s.inner = inner ? *inner : inner_width(values, "expand", a.hidden);
  s.state = values.width({"state_size"}, 16);
  s.conv = values.small({"conv_kernel"}, 4);
  s.dt_rank = time_step_rank(values, "time_step_rank", a.hidden);
  s.bias = values.flag("use_bias", false);
  s.conv_bias = values.flag("use_conv_bias", true);
}

// The keys of Mamba inside a hybrid. Its heads have mamba_d_head channels each, or what fills the
// inner width.
void read_hybrid_scan(DecoderValues& values, Architecture& a, std::int64_t state) {
  StateSpace& s = a.state_space;
  s.inner = inner_width(values, "mamba_expand", a.hidden);
  s.state = values.width({"mamba_d_state"}, state);
  s.conv = values.small({"mamba_d_conv"}, 4);
  s.conv_bias = values.flag("mamba_conv_bias", true);
  s.bias = values.flag("mamba_proj_bias", false);
}

void read_hybrid_dual_scan(DecoderValues& values, Architecture& a) {
  read_hybrid_scan(values, a, 256);
  StateSpace& s = a.state_space;
  s.heads = values.width({"mamba_n_heads"}, 128);
  s.groups = values.width({"mamba_n_groups"}, 1);
  if (s.inner % s.heads != 0) {
    values.fail("mamba_n_heads", std::to_string(s.heads) + " heads do not divide the inner width " +
                                     std::to_string(s.inner));
  }
}

void check_heads(DecoderValues& values, std::string_view key, std::int64_t head_dim,
                 const StateSpace& s) {
  if (s.heads * head_dim == s.inner) return;
  values.fail(key, std::to_string(s.heads) + " heads of " + std::to_string(head_dim) +
                       " do not fill the inner width " + std::to_string(s.inner));
}

}  // namespace

void read_latent_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds) {
  for (LayerKind& kind : kinds) kind.mixer = Mixer::latent_attention;
}

void read_mamba_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  read_selective_scan(values, a);
  for (LayerKind& kind : kinds) kind.mixer = Mixer::selective_scan;
}

void read_mamba2_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  StateSpace& s = a.state_space;
  s.inner = inner_width(values, "expand", a.hidden);
  s.state = values.width({"state_size"}, 128);
  s.conv = values.small({"conv_kernel"}, 4);
  s.heads = values.width({"num_heads"}, 128);
  s.groups = values.width({"n_groups"}, 8);
  s.bias = values.flag("use_bias", false);
  s.conv_bias = values.flag("use_conv_bias", true);
  check_heads(values, "num_heads", values.width({"head_dim"}, 64), s);
  for (LayerKind& kind : kinds) kind.mixer = Mixer::dual_scan;
}

// Its Mamba has norms on the time step and on what reads and writes the state.
void read_jamba_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  read_hybrid_scan(values, a, 16);
  a.state_space.dt_rank = time_step_rank(values, "mamba_dt_rank", a.hidden);
  const std::int64_t period = values.layers({"attn_layer_period"}, 8);
  const std::int64_t offset = values.count({"attn_layer_offset"}, 4);
  std::int64_t scans = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (static_cast<std::int64_t>(i) % period == offset) continue;
    kinds[i].mixer = Mixer::selective_scan;
    ++scans;
  }
  const std::int64_t norms = a.state_space.dt_rank + 2 * a.state_space.state;
  a.extra.emplace_back("norms inside Mamba", scans * norms);
}

void read_bamba_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  read_hybrid_dual_scan(values, a);
  for (LayerKind& kind : kinds) kind.mixer = Mixer::dual_scan;
  for (const std::size_t layer : layer_indices(values, "attn_layer_indices", a.layers, {})) {
    kinds[layer].mixer = Mixer::attention;
  }
}

// Positions are off unless asked for; where there are no experts the shared one is all there is.
void read_granite_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  read_hybrid_dual_scan(values, a);
  const auto positions = values.fields().optional<std::string>("position_embedding_type");
  if (positions.value_or("nope") != "rope") a.positions = Positions::none;
  const auto types = layer_words(values, "layer_types", a.layers);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string type = types ? (*types)[i] : "mamba";
    if (type == "mamba") {
      kinds[i].mixer = Mixer::dual_scan;
    } else if (type != "attention" && type != "full_attention") {
      values.fail("layer_types", "a layer is mamba or attention, not " + in_quotes(type));
    }
    if (!kinds[i].experts) kinds[i].ffn = values.width({"shared_intermediate_size"}, 1024);
  }
}

// Each layer is one half of a block: M a scan, * attention, - a feed-forward, E experts.
void read_nemotron_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  StateSpace& s = a.state_space;
  s.heads = values.width({"mamba_num_heads"}, 128);
  s.inner = s.heads * values.width({"mamba_head_dim"}, 64);
  s.state = values.width({"ssm_state_size", "mamba_state_dim"}, 128);
  s.groups = values.width({"n_groups", "mamba_n_groups"}, 8);
  s.conv = values.find({"conv_kernel", "mamba_d_conv"}, 1, most_conv).value_or(4);
  s.bias = values.flag("mamba_proj_bias", false);
  s.conv_bias = values.flag("use_conv_bias", true);
  const auto pattern = values.fields().required<std::string>("hybrid_override_pattern");
  if (pattern.size() != kinds.size()) {
    values.fail("hybrid_override_pattern", std::to_string(pattern.size()) + " letters for " +
                                               std::to_string(kinds.size()) + " layers");
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const char letter = pattern[i];
    if (std::string_view("M*-E").find(letter) == std::string_view::npos) {
      values.fail("hybrid_override_pattern",
                  "a layer is M, *, - or E, not " + in_quotes(std::string(1, letter)));
    }
    kinds[i].mixer = letter == 'M'   ? Mixer::dual_scan
                     : letter == '*' ? Mixer::attention
                                     : Mixer::none;
    kinds[i].ffn = letter == '-' ? a.ffn : 0;
    kinds[i].experts = letter == 'E';
    if (kinds[i].experts && a.experts.count == 0) {
      values.fail("n_routed_experts", "missing, and hybrid_override_pattern has layers of experts");
    }
  }
}

// Layers of cross attention stand in a decoder layer's place; each has norms on queries and keys
// and two gates. The table of words has eight rows more than the head.
void read_mllama_layers(DecoderValues& values, Architecture& a, std::vector<LayerKind>& kinds) {
  const auto layers =
      layer_indices(values, "cross_attention_layers", a.layers, {3, 8, 13, 18, 23, 28, 33, 38});
  for (const std::size_t layer : layers) {
    kinds[layer].mixer = Mixer::none;
    kinds[layer].cross_attention = true;
  }
  const auto count = static_cast<std::int64_t>(layers.size());
  a.extra.emplace_back("norms and gates of cross attention", count * (2 * a.head_dim + 2));
  a.extra.emplace_back("words of images", 8 * a.hidden);
}

}  // namespace orrery

#include "catalog/layers_from_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/layer_lists.h"
#include "core/text.h"

namespace orrery {
namespace {

constexpr std::int64_t most_positions = 1'000'000'000;

using Layers = std::vector<bool>;

// Tokens of a window; 0 if there is none. Written as null it means none, whatever an absent key
// means.
std::int64_t window_size(DecoderValues& values, std::string_view key, std::int64_t fallback) {
  if (const auto given = values.find({key}, 1, most_positions)) return *given;
  if (values.has(key) || fallback == 0) return 0;
  values.note(std::string(key) + " = " + std::to_string(fallback));
  return fallback;
}

// True but for every n-th.
Layers all_but_every(std::int64_t n, std::size_t layers) {
  Layers some(layers, true);
  for (std::size_t i = static_cast<std::size_t>(n) - 1; i < layers;
       i += static_cast<std::size_t>(n)) {
    some[i] = false;
  }
  return some;
}

std::optional<Layers> from_layer_types(DecoderValues& values, std::size_t layers) {
  const auto types = layer_words(values, "layer_types", static_cast<std::int64_t>(layers));
  if (!types) return std::nullopt;
  Layers local;
  for (const std::string& type : *types) {
    const bool windowed = type == "sliding_attention" || type == "chunked_attention";
    if (!windowed && type != "full_attention") {
      values.fail("layer_types", "a layer of " + in_quotes(type) + " is not supported");
    }
    local.push_back(windowed);
  }
  return local;
}

// "LLLG": local and global layers, again and again; or the n of every n-th.
Layers from_pattern(DecoderValues& values, const Family& family, std::size_t layers) {
  const Json* json = values.fields().optional_json("sliding_window_pattern");
  if (!json || !json->is_string()) {
    const auto n = values.find({"sliding_window_pattern", "_sliding_window_pattern"}, 1, 10'000);
    if (!n) values.note("sliding_window_pattern = " + std::to_string(family.pattern));
    return all_but_every(n.value_or(family.pattern), layers);
  }
  const std::string& letters = json->as_string();
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
    values.fail("sliding_window_pattern", "expected letters L and G, got " + in_quotes(letters));
  }
  Layers local(layers);
  for (std::size_t i = 0; i < layers; ++i) local[i] = letters[i % letters.size()] == 'L';
  return local;
}

// [[["global", "local"], 12]]: words, and how often they come again.
Layers from_attention_types(DecoderValues& values, std::size_t layers) {
  const Json* json = values.fields().optional_json("attention_types");
  if (!json) {
    values.note("attention_types = global, local");
    Layers local(layers);
    for (std::size_t i = 1; i < layers; i += 2) local[i] = true;
    return local;
  }
  const auto wrong = [&] {
    values.fail("attention_types", "expected lists of words and a count, [[[\"global\"], 12]]");
  };
  if (!json->is_array()) wrong();
  Layers local;
  for (const Json& group : json->items()) {
    if (!group.is_array() || group.size() != 2 || !group[0].is_array() || !group[1].is_integer()) {
      wrong();
    }
    for (std::int64_t i = 0; i < group[1].as_integer() && local.size() <= layers; ++i) {
      for (const Json& word : group[0].items()) local.push_back(word == Json("local"));
      if (group[0].size() == 0) break;
    }
  }
  if (local.size() != layers) {
    values.fail("attention_types", "does not speak of " + std::to_string(layers) + " layers");
  }
  return local;
}

// The layers of positions and, in Llama 4, of chunks: a list of 1 and 0, or all but every n-th.
Layers turning_layers(DecoderValues& values, const Family& family, std::size_t layers) {
  const auto list = layer_numbers(values, "no_rope_layers", static_cast<std::int64_t>(layers));
  if (!list) {
    return all_but_every(values.layers({"no_rope_layer_interval"}, family.pattern), layers);
  }
  Layers turning;
  for (const std::int64_t one : *list) turning.push_back(one != 0);
  return turning;
}

Layers switched_on(DecoderValues& values, std::size_t layers) {
  if (const auto listed = from_layer_types(values, layers)) return *listed;
  const auto first = static_cast<std::size_t>(values.count({"max_window_layers"}, 28));
  Layers local(layers);
  for (std::size_t i = first; i < layers; ++i) local[i] = true;
  return local;
}

// The layers that see only a window, whatever its size.
Layers local_layers(DecoderValues& values, const Family& family, std::size_t layers) {
  switch (family.windows) {
    case Windows::none:
      return Layers(layers, false);
    case Windows::every_layer:
      return from_layer_types(values, layers).value_or(Layers(layers, true));
    case Windows::by_switch:
      return switched_on(values, layers);
    case Windows::by_pattern:
      if (const auto listed = from_layer_types(values, layers)) return *listed;
      return from_pattern(values, family, layers);
    case Windows::chunked:
      if (const auto listed = from_layer_types(values, layers)) return *listed;
      return turning_layers(values, family, layers);
    case Windows::listed:
      return from_attention_types(values, layers);
  }
  return Layers(layers, false);
}

std::string_view window_key(Windows windows) {
  if (windows == Windows::chunked) return "attention_chunk_size";
  return windows == Windows::listed ? "window_size" : "sliding_window";
}

bool has_windows(DecoderValues& values, const Family& family) {
  if (family.windows == Windows::by_switch) return values.flag("use_sliding_window", false);
  return family.windows != Windows::none;
}

struct Contrasts {
  bool scans, windows, globals, experts, dense;
};

Contrasts contrasts(const std::vector<LayerKind>& kinds) {
  const auto any = [&](auto test) { return std::ranges::any_of(kinds, test); };
  const auto scan = [](const LayerKind& kind) {
    return kind.mixer == Mixer::selective_scan || kind.mixer == Mixer::dual_scan;
  };
  return {.scans = any(scan),
          .windows = any([](const LayerKind& kind) { return kind.window > 0; }),
          .globals = any([&](const LayerKind& kind) { return kind.window == 0 && !scan(kind); }),
          .experts = any([](const LayerKind& kind) { return kind.experts; }),
          .dense = any([](const LayerKind& kind) { return kind.ffn > 0; })};
}

std::string mixer_name(const LayerKind& kind, const Contrasts& among) {
  if (kind.cross_attention) return "cross";
  if (kind.mixer == Mixer::none) return "";
  if (kind.mixer == Mixer::selective_scan || kind.mixer == Mixer::dual_scan) return "mamba";
  if (kind.window > 0 && among.globals) return kind.chunked ? "chunked" : "local";
  if (among.windows && kind.window == 0) return "global";
  return among.scans ? "attention" : "";
}

std::string feed_forward_name(const LayerKind& kind, const Contrasts& among) {
  if (kind.experts) return "experts";
  if (kind.ffn == 0) return "";
  return among.experts || kind.mixer == Mixer::none ? "dense" : "";
}

std::string name_of(const LayerKind& kind, const Contrasts& among) {
  const std::string mixer = mixer_name(kind, among);
  const std::string ffn = feed_forward_name(kind, among);
  if (mixer.empty() && ffn.empty()) return "decoder";
  return mixer + (mixer.empty() || ffn.empty() ? "" : " ") + ffn;
}

bool is_ordinary(const Architecture& a, const LayerKind& kind) {
  return kind.mixer == Mixer::attention && !kind.chunked && kind.rotary && !kind.experts &&
         !kind.cross_attention && kind.ffn == a.ffn;
}

}  // namespace

void read_windows(DecoderValues& values, const Family& family, const Architecture& a,
                  std::vector<LayerKind>& kinds) {
  const bool windows = has_windows(values, family);
  const std::int64_t given =
      windows ? window_size(values, window_key(family.windows), family.window) : 0;
  // A window over everything is none.
  const std::int64_t window = given >= a.max_positions ? 0 : given;
  const Layers local =
      given > 0 ? local_layers(values, family, kinds.size()) : Layers(kinds.size(), false);
  const Layers turning = family.unturned == Unturned::every_nth
                             ? turning_layers(values, family, kinds.size())
                             : Layers(kinds.size(), true);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].window = local[i] ? window : 0;
    kinds[i].chunked = kinds[i].window > 0 && family.windows == Windows::chunked;
    kinds[i].rotary = turning[i];
    if (family.unturned == Unturned::global && given > 0) kinds[i].rotary = local[i];
  }
}

void set_runs(Architecture& a, std::vector<LayerKind> kinds) {
  const Contrasts among = contrasts(kinds);
  for (LayerKind& kind : kinds) kind.name = name_of(kind, among);
  for (const LayerKind& kind : kinds) {
    if (a.runs.empty() || !(a.runs.back().kind == kind)) a.runs.push_back({kind, 0});
    ++a.runs.back().count;
  }
  if (a.runs.size() != 1 || !is_ordinary(a, a.runs.front().kind)) return;
  a.sliding_window = a.runs.front().kind.window;
  a.runs.clear();
}

}  // namespace orrery

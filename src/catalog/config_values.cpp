#include "catalog/config_values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_width = 10'000'000;
constexpr std::int64_t most_rows = 1'000'000'000;
constexpr std::int64_t most_small = 1'024;
constexpr double most_weights = 1e18;

double real(std::int64_t count) { return static_cast<double>(count); }

// No less than what any layer of the stack has.
double layer_bound(const Architecture& a) {
  const double queries = real(a.heads) * real(a.head_dim);
  double ffn = real(a.ffn);
  for (const LayerRun& run : a.runs) ffn = std::max(ffn, real(run.kind.ffn));
  const Experts& e = a.experts;
  const StateSpace& scan = a.state_space;
  const LatentAttention& l = a.latent;
  const double ranks = real(l.q_rank) + real(l.kv_rank);
  const double latents =
      ranks * (real(a.hidden) + real(a.heads) * (real(a.head_dim) + real(l.value_dim)));
  const double scans =
      real(scan.inner) * (real(scan.state) + real(scan.conv) + real(scan.dt_rank)) +
      real(a.hidden) * (real(scan.groups) * real(scan.state) + real(scan.inner));
  const double widths =
      8 * queries + 3 * (ffn + real(e.shared_width)) + real(e.count) * (3 * real(e.width) + 1);
  return real(a.hidden) * widths + 8 * (latents + scans) + 8 * (real(a.hidden) + queries + ffn);
}

double weight_bound(const Architecture& a) {
  double sum = real(a.layers) * layer_bound(a) +
               2 * real(a.hidden) * (real(a.vocab) + real(a.position_rows));
  for (const auto& [name, count] : a.extra) sum += real(count);
  for (const Tower& tower : a.towers) {
    sum += weight_bound(tower.stack) + real(tower.patch) * real(tower.stack.hidden);
    for (const auto& map : tower.projector) sum += real(map.in) * real(map.out);
  }
  return sum;
}

}  // namespace

std::int64_t ConfigValues::layers(Keys keys, std::int64_t fallback) {
  return integer(keys, fallback, 1, most_layers);
}

std::int64_t ConfigValues::width(Keys keys, std::int64_t fallback) {
  return integer(keys, fallback, 1, most_width);
}

std::int64_t ConfigValues::rows(Keys keys, std::int64_t fallback) {
  return integer(keys, fallback, 1, most_rows);
}

std::int64_t ConfigValues::small(Keys keys, std::int64_t fallback, std::int64_t least) {
  return integer(keys, fallback, least, most_small);
}

double ConfigValues::ratio(std::string_view key, double fallback) {
  if (const auto given = fields_.optional_in<double>(key, 1e-3, 1e3)) return *given;
  note_default(key, Json(fallback).dump());
  return fallback;
}

bool ConfigValues::flag(std::string_view key, bool fallback) {
  if (const auto given = fields_.optional<bool>(key)) return *given;
  note_default(key, fallback ? "true" : "false");
  return fallback;
}

std::string ConfigValues::text(std::string_view key, const std::string& fallback) {
  if (auto given = fields_.optional<std::string>(key)) return *given;
  note_default(key, fallback);
  return fallback;
}

Activation ConfigValues::activation(std::string_view key, const std::string& fallback, bool gated) {
  return activation_named(key, text(key, fallback), gated);
}

Activation ConfigValues::activation_named(std::string_view key, const std::string& name,
                                          bool gated) const {
  const bool gelu = name.starts_with("gelu") || name == "quick_gelu";
  if (gated && gelu) return Activation::geglu;
  if (gated && (name == "silu" || name == "swish")) return Activation::swiglu;
  if (!gated && gelu) return Activation::gelu;
  if (!gated && name == "relu") return Activation::relu;
  fields_.fail(key, "the activation " + in_quotes(name) + " is not supported in " + family_);
}

ConfigValues ConfigValues::nested(std::string_view key, std::string family) {
  static const Json empty = Json::object();
  auto given = fields_.optional_nested(key);
  const FieldPlace where = fields_.where().key(key);
  return {given ? *std::move(given) : Fields(empty, where.place, where.path), std::move(family),
          *defaults_};
}

std::string ConfigValues::family_under(std::string_view key, const std::string& fallback) {
  return nested(key, fallback).text("model_type", fallback);
}

bool ConfigValues::is_built_for(std::string_view task) {
  const auto names = fields_.optional<std::vector<std::string>>("architectures");
  return names && std::ranges::any_of(*names, [task](const std::string& name) {
           return name.find(task) != std::string::npos;
         });
}

void ConfigValues::note(const std::string& what) {
  const std::string text = what + " (" + family_ + ")";
  if (std::find(defaults_->begin(), defaults_->end(), text) == defaults_->end()) {
    defaults_->push_back(text);
  }
}

void ConfigValues::note_default(std::string_view key, const std::string& value) {
  note(fields_.where().key(key).path + " = " + value);
}

std::int64_t ConfigValues::integer(Keys keys, std::int64_t fallback, std::int64_t least,
                                   std::int64_t most) {
  std::optional<std::int64_t> found;
  for (const std::string_view key : keys) {
    const auto value = fields_.optional_in<std::int64_t>(key, least, most);
    if (value && found && *value != *found) {
      fields_.fail(key, std::to_string(*value) + " disagrees with " + std::string(*keys.begin()) +
                            " = " + std::to_string(*found));
    }
    if (value) found = value;
  }
  if (!found) note_default(*keys.begin(), std::to_string(fallback));
  return found.value_or(fallback);
}

std::int64_t head_width(ConfigValues& values, std::string_view key, std::int64_t hidden,
                        std::int64_t heads) {
  if (hidden % heads != 0) {
    values.fields().fail(
        key, std::to_string(heads) + " heads do not divide the width " + std::to_string(hidden));
  }
  return hidden / heads;
}

Architecture encoder_stack(const std::string& family) {
  Architecture a;
  a.name = a.family = family;
  a.causal = a.has_head = false;
  a.norm = Norm::layer_norm;
  a.positions = Positions::learned;
  a.qkv_bias = a.output_bias = a.mlp_bias = a.norm_bias = true;
  return a;
}

void read_stack_shape(Architecture& stack, ConfigValues& values, const StackShape& fallback) {
  stack.layers = values.layers({"num_hidden_layers"}, fallback.layers);
  stack.hidden = values.width({"hidden_size"}, fallback.hidden);
  stack.heads = stack.kv_heads = values.width({"num_attention_heads"}, fallback.heads);
  stack.head_dim = head_width(values, "num_attention_heads", stack.hidden, stack.heads);
  stack.ffn = values.width({"intermediate_size"}, fallback.ffn);
}

void refuse_too_many_weights(const Architecture& architecture, const std::string& place) {
  if (weight_bound(architecture) > most_weights) {
    throw InputError("such a model would have more than 1e18 weights", "", "", place);
  }
}

}  // namespace orrery

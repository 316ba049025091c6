#include "catalog/architecture_from_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "catalog/decoder_from_config.h"
#include "catalog/encoder_from_config.h"
#include "catalog/families.h"
#include "catalog/text_part.h"
#include "catalog/tower_from_config.h"
#include "core/error.h"
#include "core/fields.h"
#include "core/text.h"

namespace orrery {
namespace {

constexpr std::size_t most_near_names = 4;

// What any decoder must say, by the names that most families use.
constexpr std::array needed_keys = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                    "intermediate_size", "vocab_size"};

// Families of the same beginning, up to the first digit or dash.
std::vector<std::string> relatives(const std::string& name) {
  const std::string stem = name.substr(0, name.find_first_of("0123456789-_"));
  std::vector<std::string> names;
  if (stem.size() < 3) return names;
  for (const std::string& family : supported_families()) {
    if (family.starts_with(stem) && names.size() < most_near_names) names.push_back(family);
  }
  return names;
}

std::string what_it_says(const Json& config) {
  std::vector<std::string> given, missing;
  for (const char* key : needed_keys) (config.contains(key) ? given : missing).emplace_back(key);
  if (missing.empty()) return "it gives " + join(given) + ", but not what its layers are made of";
  if (given.empty()) return "it gives none of " + join(missing);
  return "it gives " + join(given) + ", but not " + join(missing);
}

[[noreturn]] void fail_unknown(const std::string& name, const Json& config,
                               const FieldPlace& where) {
  std::vector<std::string> near = relatives(name);
  if (near.empty()) {
    if (auto one = nearest(name, supported_families())) near.push_back(std::move(*one));
  }
  const std::string hand = "describe the model by hand under `custom:` in a scenario file";
  throw InputError(
      "the family " + in_quotes(name) + " is not known", what_it_says(config),
      near.empty() ? hand : "nearest are " + join(near) + "; if it is none of these, " + hand,
      where.text());
}

Architecture read_text(const Json& config, const std::string& place, const std::string& path) {
  Fields fields(config, place, path);
  const auto name = fields.required<std::string>("model_type");
  const Family* family = find_family(name);
  if (!family) fail_unknown(name, config, fields.where().key("model_type"));
  return decoder_from_config(std::move(fields), *family);
}

void refuse_towers(const Json& config, const std::string& place) {
  Fields fields(config, place);
  for (const std::string_view key : {"vision_config", "audio_config"}) {
    if (!fields.optional_json(key)) continue;
    fields.fail(key, "the family " + fields.required<std::string>("model_type") + " has no towers",
                "families that have: " + join(multimodal_families()));
  }
  if (fields.optional<bool>("is_encoder_decoder", false)) {
    fields.fail("is_encoder_decoder",
                "the family " + fields.required<std::string>("model_type") + " is a decoder");
  }
}

}  // namespace

Architecture architecture_from_config(const Json& config, const std::string& place) {
  if (auto encoder = encoder_from_config(config, place)) return std::move(*encoder);
  const auto text = text_part(config, place);
  if (!text) {
    Architecture a = read_text(config, place, "");
    refuse_towers(config, place);
    return a;
  }
  const auto family = Fields(config, place).required<std::string>("model_type");
  Architecture a = read_text(text->config, place, text->path);
  a.towers = towers_from_config(config, a, place, a.defaults);
  a.name = a.family = family;
  refuse_too_many_weights(a, place);
  return a;
}

std::vector<std::string> supported_families() {
  std::vector<std::string> names = encoder_families();
  for (const Family& family : families()) names.emplace_back(family.name);
  for (std::string& name : multimodal_families()) names.push_back(std::move(name));
  std::ranges::sort(names);
  return names;
}

}  // namespace orrery

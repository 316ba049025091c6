#include "catalog/decoder_values.h"

#include <vector>

#include "core/text.h"

namespace orrery {
namespace {

constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_width = 10'000'000;
constexpr std::int64_t most_rows = 1'000'000'000;

}  // namespace

std::optional<std::int64_t> DecoderValues::number(std::string_view key, std::int64_t least,
                                                  std::int64_t most) {
  const Json* json = fields().optional_json(key);
  if (!json) return std::nullopt;
  if (!json->is_array()) return fields().optional_in<std::int64_t>(key, least, most);
  const auto each = fields().required<std::vector<std::int64_t>>(key);
  if (each.empty()) fail(key, "an empty list");
  for (const std::int64_t value : each) {
    if (value != each.front()) {
      fail(key, "differs from layer to layer, which is not supported");
    }
  }
  if (each.front() < least || each.front() > most) {
    fail(key, "must be between " + std::to_string(least) + " and " + std::to_string(most) +
                  ", got " + std::to_string(each.front()));
  }
  return each.front();
}

std::optional<std::int64_t> DecoderValues::find(Keys keys, std::int64_t least, std::int64_t most) {
  std::optional<std::int64_t> found;
  std::string_view found_key;
  for (const std::string_view key : keys) {
    const auto value = number(key, least, most);
    if (!value) continue;
    if (found && *found != *value) {
      fail(key, std::to_string(*value) + " disagrees with " + std::string(found_key) + " = " +
                    std::to_string(*found));
    }
    if (!found) found_key = key;
    found = value;
  }
  return found;
}

std::int64_t DecoderValues::required(Keys keys, std::int64_t most) {
  if (const auto value = find(keys, 1, most)) return *value;
  const std::vector<std::string> names(keys.begin(), keys.end());
  fail(*keys.begin(), "missing",
       names.size() > 1 ? "any of its names will do: " + join(names) : "");
}

std::int64_t DecoderValues::required_width(Keys keys) { return required(keys, most_width); }
std::int64_t DecoderValues::required_layers(Keys keys) { return required(keys, most_layers); }
std::int64_t DecoderValues::required_rows(Keys keys) { return required(keys, most_rows); }

std::int64_t DecoderValues::count(Keys keys, std::int64_t fallback) {
  if (const auto value = find(keys, 0, most_width)) return *value;
  note(std::string(*keys.begin()) + " = " + std::to_string(fallback));
  return fallback;
}

std::int64_t DecoderValues::positions(Keys keys, std::int64_t fallback) {
  std::optional<std::int64_t> first;
  for (const std::string_view key : keys) {
    const auto value = number(key, 1, most_rows);
    if (!first) first = value;
  }
  if (!first) note(std::string(*keys.begin()) + " = " + std::to_string(fallback));
  return first.value_or(fallback);
}

bool DecoderValues::is_null(Keys keys) {
  bool null = false;
  for (const std::string_view key : keys) {
    if (fields().optional_json(key)) return false;
    null = null || fields().has(key);
  }
  return null;
}

}  // namespace orrery

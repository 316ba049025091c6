// Values of a decoder's config.json: what must be given, and what goes by several names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/config_values.h"

namespace orrery {

class DecoderValues : public ConfigValues {
 public:
  using ConfigValues::ConfigValues;

  /// The whole number under whichever of its names the configuration uses; none if absent or null.
  /// A list of equal numbers, one a layer, is that number. InputError for names that disagree, for
  /// numbers that differ between layers, and outside [least, most].
  std::optional<std::int64_t> find(Keys keys, std::int64_t least, std::int64_t most);

  std::int64_t required_width(Keys keys);   // InputError if absent
  std::int64_t required_layers(Keys keys);  // "
  std::int64_t required_rows(Keys keys);    // "
  /// How many there are of something, none allowed.
  std::int64_t count(Keys keys, std::int64_t fallback);
  /// The first of several limits that need not agree.
  std::int64_t positions(Keys keys, std::int64_t fallback);

  /// Written as null under one of these names, and not given under another.
  bool is_null(Keys keys);
  bool has(std::string_view key) { return fields().has(key); }
  [[noreturn]] void fail(std::string_view key, const std::string& problem,
                         const std::string& suggestion = "") {
    fields().fail(key, problem, suggestion);
  }

 private:
  std::optional<std::int64_t> number(std::string_view key, std::int64_t least, std::int64_t most);
  std::int64_t required(Keys keys, std::int64_t most);
};

}  // namespace orrery

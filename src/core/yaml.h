// YAML at the door: turned into Json, so that one typed reader serves both.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.h"

namespace orrery {

/// One plain document. Unquoted true, false, null and JSON numbers become what they are in JSON;
/// any other scalar is a string. InputError at "place:line:column" for anchors, aliases, tags,
/// duplicate keys, further documents, the escapes \N and \_, and depth beyond kMaxJsonDepth.
Json parse_yaml(std::string_view text, const std::string& place);

inline constexpr std::size_t kScenarioReadLimit = std::size_t{1} << 20;

/// A scenario-like file by its name: .yaml and .yml as YAML, anything else as JSON. InputError
/// beyond kScenarioReadLimit: yaml-cpp reads a few MB a second.
Json read_json_or_yaml(const std::string& path);

}  // namespace orrery

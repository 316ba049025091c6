#include "catalog/entry_text.h"

#include <algorithm>

namespace orrery {
namespace {

bool is_scalar(const Json& json) { return !json.is_object() && !json.is_array(); }

bool is_flat(const Json& json) {
  if (json.is_object()) {
    return std::ranges::all_of(json.members(),
                               [](const auto& member) { return is_scalar(member.second); });
  }
  return is_scalar(json) || std::ranges::all_of(json.items(), is_scalar);
}

std::string text_of(const Json& json, const std::string& indent) {
  if (is_scalar(json)) return json.dump();
  const bool flat = is_flat(json) && !indent.empty();
  const std::string inner = indent + "  ";
  const std::string first = flat || json.size() == 0 ? "" : "\n" + inner;
  const std::string next = flat ? ", " : ",\n" + inner;
  const std::string last = flat || json.size() == 0 ? "" : "\n" + indent;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? first : next) + part; };
  if (json.is_object()) {
    for (const auto& [key, value] : json.members()) {
      add(Json(key).dump() + ": " + text_of(value, inner));
    }
    return "{" + text + last + "}";
  }
  for (const Json& item : json.items()) add(text_of(item, inner));
  return "[" + text + last + "]";
}

}  // namespace

std::string entry_text(const Json& json) { return text_of(json, "") + "\n"; }

}  // namespace orrery

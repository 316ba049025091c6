#include "catalog/sources.h"

#include <string>

namespace orrery {
namespace {

void check_references(const Json& json, const FieldPlace& where, const Json& sources) {
  if (json.is_object()) {
    const Json* source = json.contains("evidence") ? json.find("source") : nullptr;
    if (source && source->is_string() && !sources.contains(source->as_string())) {
      where.key("source").fail("no source " + source->as_string() + " in this entry");
    }
    for (const auto& [key, value] : json.members()) {
      check_references(value, where.key(key), sources);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      check_references(json[i], where.item(i), sources);
    }
  }
}

}  // namespace

void check_sources(Fields& entry) {
  Fields sources = entry.nested("sources");
  for (const auto& [key, value] : sources.json().members()) {
    Fields source = sources.nested(key);
    source.required<std::string>("title");
    source.required<std::string>("where");
    source.required<std::string>("read");
    source.optional<std::string>("url");
    source.finish();
  }
  check_references(entry.json(), entry.where(), sources.json());
}

}  // namespace orrery

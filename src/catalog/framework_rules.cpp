#include "catalog/framework_rules.h"

#include <algorithm>
#include <charconv>

#include "catalog/sources.h"
#include "core/error.h"
#include "core/fields.h"
#include "core/text.h"

namespace orrery {
namespace {

Accepted accepted_of(Fields fields, Fields& sources) {
  Accepted accepted;
  accepted.values = fields.required<std::vector<std::string>>("accepts");
  const auto source = fields.required<std::string>("source");
  if (!sources.has(source)) fields.fail("source", "no source " + source + " in this entry");
  accepted.source = sources.nested(source).required<std::string>("title");
  fields.finish();
  return accepted;
}

// Replaces the rules that `fields` names.
void read_rules(Fields& fields, Fields& sources, FrameworkRules& rules) {
  const auto read = [&](const char* key, FrameworkRules::Rule& rule) {
    if (auto nested = fields.optional_nested(key)) rule = accepted_of(*nested, sources);
  };
  read("kv_heads", rules.kv_heads);
  read("uneven_layers", rules.uneven_layers);
  read("schedules", rules.schedules);
  read("zero", rules.zero);
  read("zero_in_pipelines", rules.zero_in_pipelines);
  read("context", rules.context);
  read("experts", rules.experts);
  read("experts_with_tp", rules.experts_with_tp);
  read("offload", rules.offload);
  read("offload_in_pipelines", rules.offload_in_pipelines);
  read("offload_with_recompute", rules.offload_with_recompute);
  read("offload_to", rules.offload_to);
  read("recompute", rules.recompute);
}

// "0.12.1" as numbers, which compare as versions do.
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  const char* at = version.data();
  const char* const end = at + version.size();
  while (true) {
    int number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || (next != end && *next != '.')) {
      throw InputError(in_quotes(version) + " is no version", "numbers with dots between",
                       "for example 0.12");
    }
    numbers.push_back(number);
    if (next == end) return numbers;
    at = next + 1;
  }
}

}  // namespace

bool Accepted::has(std::string_view value) const {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool accepts(const FrameworkRules::Rule& rule, std::string_view value) {
  return !rule || rule->has(value);
}

FrameworkRules framework_rules_from_json(const Json& json, const std::string& place,
                                         std::string_view version) {
  Fields fields(json, place);
  fields.ignore("name");
  fields.ignore("aliases");
  FrameworkRules rules;
  rules.title = fields.required<std::string>("title");
  rules.vocab_multiple = fields.required_in<std::int64_t>("vocab_multiple", 1, 1 << 16);
  check_sources(fields);
  Fields sources = fields.nested("sources");
  read_rules(fields, sources, rules);
  for (Fields& old : fields.list("versions")) {  // the oldest first
    const std::vector<int> until = numbers_of(old.required<std::string>("until"));
    FrameworkRules then = rules;
    read_rules(old, sources, then);
    old.finish();
    if (!version.empty() && numbers_of(version) < until) {
      rules = then;
      break;
    }
  }
  fields.finish();
  return rules;
}

}  // namespace orrery

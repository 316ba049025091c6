// What a framework accepts of a strategy, by version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace orrery {

/// The values that a framework takes for one setting, and who says so.
struct Accepted {
  std::vector<std::string> values;
  std::string source;  ///< title of the page, file or issue

  bool has(std::string_view value) const;
};

struct FrameworkRules {
  // A rule that is absent refuses nothing; one without values refuses all. Values are the names
  // that plan/strategy.h gives.
  using Rule = std::optional<Accepted>;

  std::string title;   ///< of the framework, as messages print it
  Rule kv_heads;       ///< "divided" by tp, "copied" where fewer than tp, "one-each": as many as tp
  Rule uneven_layers;  ///< "any" count a chunk; "ends": of the first and the last stage only;
                       ///< "embedding-and-head": each takes a layer's place without being asked
  Rule schedules;      ///< none: no pipelines
  Rule zero;           ///< "0" to "3"
  Rule zero_in_pipelines;
  Rule context;          ///< kinds of context parallelism
  Rule experts;          ///< "ep", "etp"
  Rule experts_with_tp;  ///< "sequence-parallel": only so
  Rule offload, offload_in_pipelines, offload_with_recompute;
  Rule offload_to;  ///< "nvme"
  Rule recompute;
  std::int64_t vocab_multiple = 1;  ///< rows of the vocabulary are padded to this times tp
};

/// Whether `rule` lets `value` pass.
bool accepts(const FrameworkRules::Rule& rule, std::string_view value);

/// The rules of one `version` ("0.8"; empty: the newest). An entry's `versions` say what else held
/// `until` a version. InputError for a version that is no dotted number.
FrameworkRules framework_rules_from_json(const Json& json, const std::string& place,
                                         std::string_view version = "");

}  // namespace orrery

// A question as typed, and the same question with every name found and every default filled in.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/architecture.h"
#include "catalog/catalog.h"
#include "catalog/cluster.h"
#include "catalog/framework.h"
#include "core/json.h"
#include "cost/job_kernels.h"
#include "model/build.h"
#include "model/count.h"
#include "plan/lower.h"
#include "plan/strategy.h"
#include "twin/job.h"

namespace orrery {

inline constexpr std::string_view command_line = "command line";

// Flags and a scenario file are the same thing: keys are the flag names without dashes
// ("global-batch"), values as written. Unknown keys are refused by resolve.
struct Request {
  std::map<std::string, std::string> values;
  // Given in place of a model's name: by hand (`custom`), or of a validation row.
  std::optional<Architecture> architecture;
  std::string place;                               // command_line or the file's path
  std::map<std::string, std::string> places = {};  // of the keys that came from elsewhere

  // Where a message about `key` points: "--tp", or "job.yaml: tp".
  std::string place_of(const std::string& key) const;
};

enum class ValueKind { text, flag };  // a flag may stand alone and means true

// One key of a request: the flag, its values and what it means. The table is the documentation.
struct RequestKey {
  std::string_view name, group, values, help;
  ValueKind kind = ValueKind::text;
};
std::span<const RequestKey> request_keys();

// A default that was filled in, and why it is what it is.
struct Assumption {
  std::string field, value, reason;
};

struct Scenario {
  Architecture model;
  Cluster cluster;
  Framework framework;
  Strategy strategy;
  Job job;
  Precision precision;  // bf16, fp16, fp8, ...: of the linear layers
  AttentionKernel attention;
  JobKernels kernels;
  FlopConvention convention;
  std::optional<Tokens> tokens;               // of the whole run
  std::optional<DollarsPerSecond> gpu_price;  // none: unknown
  std::optional<Watts> power_cap;             // none: the card's own limit
  std::vector<Assumption> assumptions;
  std::vector<std::string> warnings;
};

// An object of flat keys, and `custom`; InputError at `place` for anything else.
Request request_from_json(const Json&, const std::string& place);
// YAML by its name (.yaml, .yml), else JSON.
Request request_from_file(const std::string& path);
// Flags win over the file's keys.
Request merged(Request file, const Request& flags);

// Names found, units parsed, defaults filled in; InputError for whatever is wrong. A strategy that
// breaks rules is not an error here: `broken_rules` says so in the answer.
Scenario resolve(const Request&, const Catalog&);

// What the graph and its lowering must know of a scenario; again for each strategy.
GraphOptions graph_options(const Scenario&);
Recipe recipe_of(const Framework&, const Strategy&, const Job&);

}  // namespace orrery

// Published measurements against predictions: a loop over rows, and the error table that comes out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "twin/evidence.h"
#include "twin/twin.h"
#include "validate/dimensions.h"
#include "validate/measurement.h"
#include "validate/statistics.h"

namespace orrery {

/// A row that was predicted. Speeds are tokens a second and GPU, memory the peak of the fullest GPU
/// in GiB; errors are predicted / measured - 1.
struct ValidatedRow {
  std::string id, source, gpu, framework, task, precision;
  std::string kind;  // of job, as evidence groups them
  std::int64_t gpus = 0, seq_len = 0;
  double network = 0;           // bytes a second a GPU between nodes
  bool shards_weights = false;  // ZeRO-3, by the row or by the framework's default
  double parameters = 0;
  std::optional<double> measured, predicted, error;
  std::optional<double> memory_measured, memory_predicted, memory_error;
  Outcome outcome = Outcome::ok;
  bool refused = false;  // predicted not to fit
  Defaults defaults;
};

struct SkippedRow {
  std::string id, reason;
};

/// Rows that share one value of one label.
struct ErrorGroup {
  std::string by, key;
  ErrorStatistics errors;
};

struct OomTally {
  std::int64_t n = 0, refused = 0;  // rows that ran out of memory, and those that were refused
  std::int64_t ran = 0, ran_refused = 0;  // rows that ran, and false alarms among them
};

struct Report {
  std::vector<ValidatedRow> rows;
  std::vector<SkippedRow> skipped;
  ErrorStatistics summary;     // of the speed of every row that has one
  std::int64_t defaulted = 0;  // rows of `summary` that left something out
  std::optional<double> median_of_source_medians;
  std::vector<ErrorGroup> groups;  // by source, gpu, framework, task, precision
  ErrorStatistics memory;
  std::vector<ErrorGroup> memory_groups;
  OomTally oom;
};

using Predictor = std::function<Answer(const Request&)>;

/// Each row is expressed, predicted and compared; one that cannot be is skipped with the reason:
/// express() says no, the predictor throws InputError, or the strategy breaks a rule.
Report validate(const std::vector<Measurement>& rows, const Predictor& predictor);
/// Through the door: resolve, then price_scenario.
Report validate(const std::vector<Measurement>& rows, const Catalog& catalog);

/// The keys of docs/formats.md.
Json to_json(const Report& report);

/// Rows that a face prints as they are.
struct TextTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
/// Summary, groups, memory, out-of-memory and the reasons for skipping, in this order.
std::vector<TextTable> tables_of(const Report& report);

/// What the door says of its own record: errors of the step time by GPU architecture, framework and
/// precision.
EvidenceTable evidence_of(const Report& report, const Catalog& catalog);

}  // namespace orrery

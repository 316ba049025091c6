#include <fmt/format.h>

#include "validate/report_parts.h"
#include "validate/validate.h"

namespace orrery {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json summary_json(const Report& report) {
  Json summary = summary_json(report.summary, report.skipped);
  summary.set("defaulted", report.defaulted);
  summary.set("median_of_source_medians", or_null(report.median_of_source_medians));
  return summary;
}

Json row_json(const ValidatedRow& row) {
  Json defaults = Json::array();
  for (const std::string& text : row.defaults) defaults.push_back(text);
  return Json::object({{"id", row.id},
                       {"measured", or_null(row.measured)},
                       {"predicted", or_null(row.predicted)},
                       {"error", or_null(row.error)},
                       {"memory_measured", or_null(row.memory_measured)},
                       {"memory_predicted", or_null(row.memory_predicted)},
                       {"refused", row.refused},
                       {"defaults", std::move(defaults)}});
}

TextTable oom_table(const OomTally& oom) {
  return {"Does it fit?",
          {"outcome", "rows", "predicted not to fit"},
          {{"ran out of memory", fmt::format("{}", oom.n), fmt::format("{}", oom.refused)},
           {"ran", fmt::format("{}", oom.ran), fmt::format("{}", oom.ran_refused)}}};
}

}  // namespace

Json to_json(const Report& report) {
  Json rows = Json::array();
  for (const ValidatedRow& row : report.rows) rows.push_back(row_json(row));
  const ErrorStatistics& memory = report.memory;
  return Json::object({{"schema_version", 1},
                       {"summary", summary_json(report)},
                       {"groups", group_json(report.groups)},
                       {"memory", Json::object({{"n", memory.n},
                                                {"median_abs_error", or_null(memory.median)},
                                                {"p90_abs_error", or_null(memory.p90)},
                                                {"within_10pct", or_null(memory.within_10)},
                                                {"groups", group_json(report.memory_groups)}})},
                       {"oom", Json::object({{"n", report.oom.n},
                                             {"refused", report.oom.refused},
                                             {"ran", report.oom.ran},
                                             {"ran_refused", report.oom.ran_refused}})},
                       {"rows", std::move(rows)}});
}

std::vector<TextTable> tables_of(const Report& report) {
  std::vector<TextTable> tables = {
      error_table("Error of tokens/s per GPU", "rows with a speed", report.summary, report.groups)};
  if (report.memory.n > 0) {
    tables.push_back(error_table("Error of peak memory", "rows with a peak", report.memory,
                                 report.memory_groups));
  }
  tables.push_back(oom_table(report.oom));
  if (!report.skipped.empty()) tables.push_back(skipped_table(report.skipped));
  return tables;
}

}  // namespace orrery

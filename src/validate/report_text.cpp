#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "validate/validate.h"

namespace orrery {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json group_json(const std::vector<ErrorGroup>& groups) {
  Json out = Json::array();
  for (const ErrorGroup& group : groups) {
    out.push_back(Json::object({{"by", group.by},
                                {"key", group.key},
                                {"n", group.errors.n},
                                {"median_abs_error", or_null(group.errors.median)},
                                {"p90_abs_error", or_null(group.errors.p90)},
                                {"within_10pct", or_null(group.errors.within_10)}}));
  }
  return out;
}

Json summary_json(const Report& report) {
  Json skipped = Json::array();
  for (const SkippedRow& row : report.skipped) {
    skipped.push_back(Json::object({{"id", row.id}, {"reason", row.reason}}));
  }
  const ErrorStatistics& errors = report.summary;
  return Json::object({{"n", errors.n},
                       {"skipped", std::move(skipped)},
                       {"defaulted", report.defaulted},
                       {"median_abs_error", or_null(errors.median)},
                       {"mean_abs_error", or_null(errors.mean)},
                       {"p90_abs_error", or_null(errors.p90)},
                       {"within_10pct", or_null(errors.within_10)},
                       {"within_15pct", or_null(errors.within_15)},
                       {"median_of_source_medians", or_null(report.median_of_source_medians)}});
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

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::vector<std::string> error_cells(const ErrorStatistics& errors) {
  return {fmt::format("{}", errors.n), percent(errors.median), percent(errors.mean),
          percent(errors.p90), percent(errors.within_10)};
}

TextTable error_table(std::string title, std::string first_row, const ErrorStatistics& all,
                      const std::vector<ErrorGroup>& groups) {
  TextTable table{
      std::move(title), {"group", "key", "rows", "median", "mean", "p90", "within 10 %"}, {}};
  const auto add = [&](const std::string& by, const std::string& key,
                       const ErrorStatistics& errors) {
    std::vector<std::string> cells = {by, key};
    for (std::string& cell : error_cells(errors)) cells.push_back(std::move(cell));
    table.rows.push_back(std::move(cells));
  };
  add("all", first_row, all);
  for (const ErrorGroup& group : groups) add(group.by, group.key, group.errors);
  return table;
}

TextTable oom_table(const OomTally& oom) {
  return {"Does it fit?",
          {"outcome", "rows", "predicted not to fit"},
          {{"ran out of memory", fmt::format("{}", oom.n), fmt::format("{}", oom.refused)},
           {"ran", fmt::format("{}", oom.ran), fmt::format("{}", oom.ran_refused)}}};
}

TextTable skipped_table(const std::vector<SkippedRow>& skipped) {
  std::map<std::string, std::pair<std::int64_t, std::string>> reasons;  // count, first id
  for (const SkippedRow& row : skipped) {
    auto& [count, first] = reasons[row.reason];
    if (count++ == 0) first = row.id;
  }
  TextTable table{"Rows left out", {"reason", "rows", "first"}, {}};
  for (const auto& [reason, entry] : reasons) {
    table.rows.push_back({reason, fmt::format("{}", entry.first), entry.second});
  }
  return table;
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

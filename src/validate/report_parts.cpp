#include "validate/report_parts.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace orrery {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::vector<std::string> error_cells(const ErrorStatistics& errors) {
  return {fmt::format("{}", errors.n), percent(errors.median), percent(errors.mean),
          percent(errors.p90), percent(errors.within_10)};
}

}  // namespace

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

Json summary_json(const ErrorStatistics& errors, const std::vector<SkippedRow>& skipped) {
  Json left_out = Json::array();
  for (const SkippedRow& row : skipped) {
    left_out.push_back(Json::object({{"id", row.id}, {"reason", row.reason}}));
  }
  return Json::object({{"n", errors.n},
                       {"skipped", std::move(left_out)},
                       {"median_abs_error", or_null(errors.median)},
                       {"mean_abs_error", or_null(errors.mean)},
                       {"p90_abs_error", or_null(errors.p90)},
                       {"within_10pct", or_null(errors.within_10)},
                       {"within_15pct", or_null(errors.within_15)}});
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

}  // namespace orrery

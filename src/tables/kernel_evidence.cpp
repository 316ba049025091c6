#include "tables/kernel_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/fields.h"
#include "units/text.h"

namespace orrery {
namespace {

// A band of few rows says little of the next one: this many rows of `unseen_kernel_spread` are
// counted with its own.
constexpr double unseen_rows = 5;

double doublings(double a, double b) {
  return a > 0 && b > 0 ? std::abs(std::log2(a / b)) : std::abs(a - b) > 0 ? far_from_rows : 0;
}

double distance(const KernelLandmark& row, const KernelTime& time) {
  return doublings(row.flop.value(), time.flop.value()) +
         doublings(row.bytes.value(), time.bytes.value());
}

double shrunk(double measured, std::int64_t n, double unseen) {
  const double rows = static_cast<double>(n);
  return (rows * measured + unseen_rows * unseen) / (rows + unseen_rows);
}

KernelBand band_in(Fields fields) {
  KernelBand band;
  band.n = fields.required_in<std::int64_t>("n", 0, std::int64_t{1} << 40);
  band.low = fields.required_in<double>("low", 0, 1e6);
  band.high = fields.required_in<double>("high", 0, 1e6);
  fields.finish();
  return band;
}

KernelLandmark landmark_in(Fields fields) {
  KernelLandmark row;
  row.line = fields.required_in<std::int64_t>("line", 0, std::int64_t{1} << 40);
  row.shape = fields.required<std::string>("shape");
  row.flop = Flop(fields.required_in<double>("flop", 0, 1e30));
  row.bytes = Bytes(fields.required_in<double>("bytes", 0, 1e30));
  row.measured = Seconds(fields.required_in<double>("us", 0, 1e15) * 1e-6);
  fields.finish();
  return row;
}

KernelEvidence group_in(Fields fields) {
  KernelEvidence group;
  group.op = fields.required<std::string>("op");
  group.variant = fields.required<std::string>("variant");
  group.library = fields.required<std::string>("library");
  group.gpu = fields.required<std::string>("gpu");
  group.source = fields.required<std::string>("source");
  group.n = fields.required_in<std::int64_t>("n", 1, std::int64_t{1} << 40);
  group.median = fields.required_in<double>("median_abs_error", 0, 1e6);
  std::vector<Fields> bands = fields.list("bands");
  if (bands.size() != kernel_bands) fields.fail("bands", "expected four");
  for (std::size_t i = 0; i < bands.size(); ++i) group.bands[i] = band_in(std::move(bands[i]));
  for (Fields& row : fields.list("rows")) group.landmarks.push_back(landmark_in(std::move(row)));
  fields.finish();
  return group;
}

Json to_json(const KernelEvidence& group) {
  Json bands = Json::array(), rows = Json::array();
  for (const KernelBand& band : group.bands) {
    bands.push_back(Json::object({{"n", band.n}, {"low", band.low}, {"high", band.high}}));
  }
  for (const KernelLandmark& row : group.landmarks) {
    rows.push_back(Json::object({{"line", row.line},
                                 {"shape", row.shape},
                                 {"flop", row.flop.value()},
                                 {"bytes", row.bytes.value()},
                                 {"us", row.measured.value() * 1e6}}));
  }
  return Json::object({{"op", group.op},
                       {"variant", group.variant},
                       {"library", group.library},
                       {"gpu", group.gpu},
                       {"source", group.source},
                       {"n", group.n},
                       {"median_abs_error", group.median},
                       {"bands", std::move(bands)},
                       {"rows", std::move(rows)}});
}

}  // namespace

std::size_t band_of(Seconds predicted) {
  const double us = predicted.value() * 1e6;
  return us < 20 ? 0 : us < 100 ? 1 : us < 1000 ? 2 : 3;
}

std::string KernelEvidence::name() const { return op + " " + variant + " " + library + " " + gpu; }

KernelRecord record_of(std::span<const KernelEvidence> table, const FoundSet& found,
                       const KernelTime& predicted) {
  const KernelSet& set = *found.set;
  KernelRecord record;
  record.group = set.op + " " + set.variant + " " + set.library + " " + set.gpu;
  record.extrapolated = true;
  double low = 1 - unseen_kernel_spread, high = 1 + unseen_kernel_spread;
  const auto group = std::ranges::find(table, record.group, &KernelEvidence::name);
  if (group != table.end()) {
    record.n = group->n;
    record.median_abs_error = group->median;
    const KernelBand& band = group->bands[band_of(predicted.time)];
    low = shrunk(band.low, band.n, low);
    high = shrunk(band.high, band.n, high);
    const auto nearest = std::ranges::min_element(
        group->landmarks, {}, [&](const KernelLandmark& row) { return distance(row, predicted); });
    if (nearest != group->landmarks.end()) {
      record.nearest = fmt::format("{}: {} (line {}, {})", nearest->shape,
                                   to_text(nearest->measured), nearest->line, group->source);
      record.extrapolated =
          !found.own_gpu || !found.own_library || distance(*nearest, predicted) > far_from_rows;
    }
  }
  if (record.extrapolated) {
    low = std::max(0.1, 2 * low - 1);
    high = 2 * high - 1;
  }
  record.low = predicted.time * std::min(low, 1.0);
  record.high = predicted.time * std::max(high, 1.0);
  return record;
}

std::vector<KernelEvidence> load_kernel_evidence(const std::string& data_dir) {
  const std::string path = data_dir + "/kernel_evidence.json";
  if (!std::filesystem::exists(path)) return {};
  return kernel_evidence_from_json(read_json(path), path);
}

std::vector<KernelEvidence> kernel_evidence_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  fields.required_in<std::int64_t>("schema_version", 1, 1);
  fields.ignore("about");
  std::vector<KernelEvidence> table;
  for (Fields& group : fields.list("groups")) table.push_back(group_in(std::move(group)));
  fields.finish();
  return table;
}

Json to_json(std::span<const KernelEvidence> table) {
  Json groups = Json::array();
  for (const KernelEvidence& group : table) groups.push_back(to_json(group));
  return Json::object({{"schema_version", 1},
                       {"about", "written by: orrery validate TABLE.csv --write-evidence"},
                       {"groups", std::move(groups)}});
}

}  // namespace orrery

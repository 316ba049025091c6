#include "validate/kernel_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "fit/fit_kernels.h"
#include "tables/operators.h"
#include "validate/report_parts.h"

namespace orrery {
namespace {

// Devices and sets that rows share, found once.
class Bench {
 public:
  Bench(const Catalog& catalog, const KernelSets& sets) : catalog_(catalog), sets_(sets) {}

  std::variant<ValidatedKernel, std::string> run(const KernelRow& row) {
    if (!catalog_.has(EntryKind::gpu, row.gpu)) return "no GPU " + row.gpu + " in the catalog";
    const Gpu& gpu = gpu_named(row.gpu);
    const Operator* model = operator_named(row.op);
    const FoundSet found = sets_.find(row.op, row.variant, row.library, gpu);
    if (!model || !found.set) return "no parameters of " + row.op + " " + row.variant;
    ValidatedKernel out;
    out.row = &row;
    out.predicted = model->time(row.shape, *found.set, devices_.at(row.gpu));
    out.error = out.predicted.time / row.measured - 1;
    out.seen = seen_by_fit(row.family);
    out.extrapolated = !found.own_gpu || !found.own_library;
    if (!std::isfinite(out.error)) return std::string("no finite prediction");
    return out;
  }

 private:
  const Gpu& gpu_named(const std::string& name) {
    const auto [place, added] = gpus_.try_emplace(name);
    if (added) {
      place->second = catalog_.gpu(name);
      devices_[name] = device_of(place->second);
    }
    return place->second;
  }

  const Catalog& catalog_;
  const KernelSets& sets_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, Device> devices_;
};

std::string time_band(Seconds time) {
  const double us = time.value() * 1e6;
  return us < 20 ? "< 20 us" : us < 100 ? "20 - 100 us" : us < 1000 ? "100 us - 1 ms" : "> 1 ms";
}

std::string set_name(const KernelRow& row) {
  return row.op + " " + row.variant + " " + row.library + " " + row.gpu;
}

std::vector<std::pair<std::string, std::string>> labels_of(const ValidatedKernel& kernel) {
  const KernelRow& row = *kernel.row;
  std::vector<std::pair<std::string, std::string>> labels = {
      {"library", row.library},
      {"gpu", row.gpu},
      {"op", row.op},
      {"variant", row.variant},
      {"time", time_band(row.measured)},
      {"family", kernel.seen ? "seen by the fit" : "unseen"},
      {"set", set_name(row)},
      {"source", row.source}};
  if (!kernel.seen) labels.emplace_back("unseen", set_name(row));
  if (!row.regime.empty()) labels.emplace_back("regime", row.library + " " + row.regime);
  if (kernel.extrapolated) labels.emplace_back("extrapolated", set_name(row));
  return labels;
}

std::vector<ErrorGroup> groups_of(const std::vector<ValidatedKernel>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const ValidatedKernel& row : rows) {
    for (const auto& label : labels_of(row)) errors[label].push_back(row.error);
  }
  std::vector<ErrorGroup> groups;
  for (const auto& [label, list] : errors) {
    groups.push_back({label.first, label.second, statistics_of(list)});
  }
  return groups;
}

KernelBand band_in(const std::vector<const ValidatedKernel*>& rows, std::size_t band) {
  std::vector<double> ratios;
  for (const ValidatedKernel* row : rows) {
    if (band_of(row->predicted.time) == band) ratios.push_back(1 / (1 + row->error));
  }
  if (ratios.empty()) return {};
  const auto digits = [](double value) { return std::round(value * 1e4) / 1e4; };
  return {.n = static_cast<std::int64_t>(ratios.size()),
          .low = digits(quantile(ratios, 0.1)),
          .high = digits(quantile(ratios, 0.9))};
}

KernelLandmark landmark_of(const ValidatedKernel& row) {
  return {.line = row.row->line,
          .shape = row.row->label,
          .flop = row.predicted.flop,
          .bytes = row.predicted.bytes,
          .measured = row.row->measured};
}

KernelEvidence evidence_of_group(std::vector<const ValidatedKernel*> rows) {
  constexpr std::size_t most = 24;
  const KernelRow& first = *rows.front()->row;
  KernelEvidence group;
  group.op = first.op;
  group.variant = first.variant;
  group.library = first.library;
  group.gpu = first.gpu;
  group.source = first.source;
  group.n = static_cast<std::int64_t>(rows.size());
  std::vector<double> errors;
  for (const ValidatedKernel* row : rows) errors.push_back(row->error);
  group.median = std::round(*statistics_of(errors).median * 1e4) / 1e4;
  for (std::size_t band = 0; band < kernel_bands; ++band) group.bands[band] = band_in(rows, band);
  std::ranges::stable_sort(rows, {}, [](const ValidatedKernel* row) {
    return (row->predicted.flop.value() + 1) * row->predicted.bytes.value();
  });
  const std::size_t kept = std::min(most, rows.size());
  for (std::size_t i = 0; i < kept; ++i) {
    group.landmarks.push_back(landmark_of(*rows[i * rows.size() / kept]));
  }
  return group;
}

}  // namespace

KernelReport validate_kernels(const KernelTable& table, const Catalog& catalog,
                              const KernelSets& sets) {
  KernelReport report;
  report.kind = table.kind;
  for (const SkippedKernelRow& row : table.skipped) {
    report.skipped.push_back({std::to_string(row.line), row.reason});
  }
  Bench bench(catalog, sets);
  std::vector<double> errors;
  for (const KernelRow& row : table.rows) {
    auto result = bench.run(row);
    if (auto* reason = std::get_if<std::string>(&result)) {
      report.skipped.push_back({std::to_string(row.line), std::move(*reason)});
      continue;
    }
    report.rows.push_back(std::get<ValidatedKernel>(result));
    errors.push_back(report.rows.back().error);
  }
  report.summary = statistics_of(errors);
  report.groups = groups_of(report.rows);
  return report;
}

std::vector<KernelEvidence> evidence_of(const KernelReport& report) {
  std::map<std::string, std::vector<const ValidatedKernel*>> groups;
  for (const ValidatedKernel& row : report.rows) {
    if (!row.extrapolated) groups[set_name(*row.row)].push_back(&row);
  }
  std::vector<KernelEvidence> table;
  for (auto& [name, rows] : groups) table.push_back(evidence_of_group(std::move(rows)));
  return table;
}

Json to_json(const KernelReport& report) {
  Json rows = Json::array();
  for (const ValidatedKernel& kernel : report.rows) {
    const KernelRow& row = *kernel.row;
    rows.push_back(Json::object({{"id", std::to_string(row.line)},
                                 {"gpu", row.gpu},
                                 {"library", row.library},
                                 {"op", row.op},
                                 {"variant", row.variant},
                                 {"measured", row.measured.value() * 1e6},
                                 {"predicted", kernel.predicted.time.value() * 1e6},
                                 {"error", kernel.error},
                                 {"bound", std::string(to_text(kernel.predicted.bound))},
                                 {"seen", kernel.seen},
                                 {"extrapolated", kernel.extrapolated}}));
  }
  return Json::object({{"schema_version", 1},
                       {"table", report.kind},
                       {"unit", "us"},
                       {"summary", summary_json(report.summary, report.skipped)},
                       {"groups", group_json(report.groups)},
                       {"rows", std::move(rows)}});
}

std::vector<TextTable> tables_of(const KernelReport& report) {
  std::vector<ErrorGroup> groups;
  for (const ErrorGroup& group : report.groups) {
    if (group.by != "source") groups.push_back(group);
  }
  std::vector<TextTable> tables = {
      error_table("Error of the time of " + report.kind, "rows", report.summary, groups)};
  if (!report.skipped.empty()) tables.push_back(skipped_table(report.skipped));
  return tables;
}

}  // namespace orrery

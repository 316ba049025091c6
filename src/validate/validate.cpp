#include "validate/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"
#include "model/count.h"
#include "validate/express.h"

namespace orrery {
namespace {

constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

struct Label {
  std::string_view by;
  std::string ValidatedRow::*of;
};
constexpr std::array labels = {
    Label{"source", &ValidatedRow::source}, Label{"gpu", &ValidatedRow::gpu},
    Label{"framework", &ValidatedRow::framework}, Label{"task", &ValidatedRow::task},
    Label{"precision", &ValidatedRow::precision}};

using ErrorOf = std::optional<double> ValidatedRow::*;

std::vector<double> errors_in(const std::vector<ValidatedRow>& rows, ErrorOf of) {
  std::vector<double> errors;
  for (const ValidatedRow& row : rows) {
    if (row.*of) errors.push_back(*(row.*of));
  }
  return errors;
}

std::vector<ErrorGroup> grouped(const std::vector<ValidatedRow>& rows, ErrorOf of) {
  std::vector<ErrorGroup> groups;
  for (const Label& label : labels) {
    std::map<std::string, std::vector<double>> errors;
    for (const ValidatedRow& row : rows) {
      if (row.*of) errors[row.*label.of].push_back(*(row.*of));
    }
    for (const auto& [key, list] : errors) {
      groups.push_back({std::string(label.by), key, statistics_of(list)});
    }
  }
  return groups;
}

std::optional<double> median_over_sources(const std::vector<ErrorGroup>& groups) {
  std::vector<double> medians;
  for (const ErrorGroup& group : groups) {
    if (group.by == "source") medians.push_back(*group.errors.median);
  }
  if (medians.empty()) return std::nullopt;
  return quantile(medians, 0.5);
}

std::optional<double> relative_error(std::optional<double> predicted,
                                     std::optional<double> measured) {
  if (!predicted || !measured) return std::nullopt;
  return *predicted / *measured - 1;
}

ValidatedRow described(const Measurement& row, const Expressed& expressed) {
  ValidatedRow out;
  out.id = row.id;
  out.source = source_of(row.id);
  out.gpu = expressed.gpu;
  out.framework = expressed.framework;
  out.task = row.task;
  out.precision = expressed.request.values.at("precision");
  out.gpus = expressed.gpus;
  out.seq_len = expressed.seq_len;
  out.parameters = static_cast<double>(parameters(*expressed.request.architecture).total());
  out.measured = expressed.tokens_per_s_per_gpu;
  out.memory_measured = row.peak_mem_gib;
  out.outcome = row.outcome;
  out.defaults = expressed.defaults;
  return out;
}

std::variant<ValidatedRow, Skip> compared(const Measurement& row, const Predictor& predictor) {
  auto expression = express(row);
  if (Skip* skip = std::get_if<Skip>(&expression)) return std::move(*skip);
  const Expressed& expressed = std::get<Expressed>(expression);
  if (!expressed.tokens_per_s_per_gpu && !row.peak_mem_gib && row.outcome == Outcome::ok) {
    return Skip{expressed.without_throughput};
  }
  ValidatedRow out = described(row, expressed);
  try {
    const Answer answer = predictor(expressed.request);
    if (!answer.priced) return Skip{"the layout breaks a rule: " + answer.reason};
    const double needed = answer.needed().value();
    if (!std::isfinite(answer.tokens_per_s_per_gpu) || !std::isfinite(needed)) {
      return Skip{"no finite prediction"};
    }
    out.network = answer.network.value();
    out.shards_weights = answer.shards_weights;
    out.kind = answer.kind;
    out.predicted = answer.tokens_per_s_per_gpu;
    out.memory_predicted = needed / bytes_per_gib;
    out.refused = !answer.feasible;
  } catch (const InputError& error) {
    return Skip{error.problem + (error.reason.empty() ? "" : " (" + error.reason + ")")};
  }
  out.error = relative_error(out.predicted, out.measured);
  out.memory_error = relative_error(out.memory_predicted, out.memory_measured);
  return out;
}

OomTally tally(const std::vector<ValidatedRow>& rows) {
  OomTally out;
  for (const ValidatedRow& row : rows) {
    if (row.outcome == Outcome::oom) ++out.n, out.refused += row.refused;
    if (row.outcome == Outcome::ok) ++out.ran, out.ran_refused += row.refused;
  }
  return out;
}

}  // namespace

Report validate(const std::vector<Measurement>& rows, const Predictor& predictor) {
  Report report;
  for (const Measurement& row : rows) {
    auto result = compared(row, predictor);
    if (Skip* skip = std::get_if<Skip>(&result)) {
      report.skipped.push_back({row.id, std::move(skip->reason)});
    } else {
      report.rows.push_back(std::get<ValidatedRow>(std::move(result)));
    }
  }
  report.summary = statistics_of(errors_in(report.rows, &ValidatedRow::error));
  report.defaulted =
      std::count_if(report.rows.begin(), report.rows.end(),
                    [](const ValidatedRow& row) { return row.error && !row.defaults.empty(); });
  report.groups = grouped(report.rows, &ValidatedRow::error);
  report.median_of_source_medians = median_over_sources(report.groups);
  report.memory = statistics_of(errors_in(report.rows, &ValidatedRow::memory_error));
  report.memory_groups = grouped(report.rows, &ValidatedRow::memory_error);
  report.oom = tally(report.rows);
  return report;
}

Report validate(const std::vector<Measurement>& rows, const Catalog& catalog) {
  return validate(
      rows, [&](const Request& request) { return price_scenario(resolve(request, catalog)); });
}

EvidenceTable evidence_of(const Report& report, const Catalog& catalog) {
  std::map<std::array<std::string, 4>, std::pair<EvidenceGroup, std::vector<double>>> groups;
  for (const ValidatedRow& row : report.rows) {
    if (!row.error || *row.predicted <= 0) continue;
    const std::string architecture(to_text(catalog.gpu(row.gpu).architecture));
    auto& [group, errors] = groups[{architecture, row.framework, row.precision, row.kind}];
    group.architecture = architecture;
    group.framework = row.framework;
    group.precision = row.precision;
    group.kind = row.kind;
    group.rows.push_back(
        {row.id, row.gpus, row.parameters, row.seq_len, row.gpu, row.network, row.shards_weights});
    errors.push_back(std::abs(*row.measured / *row.predicted - 1));  // of the step time
  }
  EvidenceTable table;
  for (auto& [key, entry] : groups) {
    auto& [group, errors] = entry;
    group.median_abs_error = quantile(errors, 0.5);
    group.p80_abs_error = quantile(errors, 0.8);
    table.push_back(std::move(group));
  }
  return table;
}

}  // namespace orrery

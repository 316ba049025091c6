#include "validate/job_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/fields.h"
#include "core/text.h"
#include "tables/kernel_row.h"
#include "validate/validate.h"

namespace orrery {
namespace {

bool shown(const std::string& id) { return hash_of(id) % 4 != 0; }

bool concerns(const JobParameter& parameter, const ValidatedRow& row, const Catalog& catalog) {
  const auto is = [](const std::string& wanted, std::string_view value) {
    return wanted.empty() || wanted == value;
  };
  if (!row.error) return false;
  const bool experts = row.kind.find("experts") != std::string::npos;
  return is(parameter.gpu, row.gpu) && is(parameter.precision, row.precision) &&
         is(parameter.architecture, to_text(catalog.gpu(row.gpu).architecture)) &&
         (parameter.frameworks.empty() ||
          std::ranges::count(parameter.frameworks, row.framework) > 0) &&
         (!parameter.experts || *parameter.experts == experts);
}

// In two halves side by side.
std::vector<ValidatedRow> predicted(const std::vector<Measurement>& rows, const Catalog& catalog) {
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
  Report first, second;
  std::thread other([&] { second = validate({middle, rows.end()}, catalog); });
  first = validate({rows.begin(), middle}, catalog);
  other.join();
  std::ranges::move(second.rows, std::back_inserter(first.rows));
  return std::move(first.rows);
}

double loss(const std::vector<ValidatedRow>& rows) {
  std::map<std::string, std::vector<double>> sources;
  for (const ValidatedRow& row : rows) {
    if (row.error) sources[row.source].push_back(std::abs(std::log1p(*row.error)));
  }
  double sum = 0;
  for (const auto& [source, errors] : sources) {
    const double weight = 1 / std::sqrt(static_cast<double>(errors.size()));
    for (const double error : errors) sum += weight * error;
  }
  return sum;
}

double value_of(const Catalog& catalog, const JobParameter& parameter) {
  const CatalogEntry& entry = catalog.entry(parameter.entry);
  const Json* at = &entry.json;
  for (const std::string& key : parameter.path) {
    at = at->find(key);
    if (!at) throw InputError("no " + parameter.name(), "", "", entry.place);
  }
  const Json* value = at->find("value");
  if (!value || !value->is_number()) {
    throw InputError(parameter.name() + " is no number", "", "", entry.place);
  }
  return value->as_double();
}

// The least of `f` between `low` and `high`, by golden section on the logarithm.
double least(double low, double high, const std::function<double(double)>& f) {
  constexpr double golden = 0.6180339887498949;
  constexpr int steps = 10;
  double a = std::log(low), b = std::log(high);
  double c = b - golden * (b - a), d = a + golden * (b - a);
  double at_c = f(std::exp(c)), at_d = f(std::exp(d));
  for (int i = 0; i < steps; ++i) {
    if (at_c < at_d) {
      b = std::exchange(d, c);
      at_d = at_c;
      c = b - golden * (b - a);
      at_c = f(std::exp(c));
    } else {
      a = std::exchange(c, d);
      at_c = at_d;
      d = a + golden * (b - a);
      at_d = f(std::exp(d));
    }
  }
  return std::exp(at_c < at_d ? c : d);
}

double four_digits(double value) {
  const double scale = std::pow(10, 3 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

std::vector<double> errors_where(const std::vector<ValidatedRow>& rows, bool were_shown) {
  std::vector<double> errors;
  for (const ValidatedRow& row : rows) {
    if (row.error && shown(row.id) == were_shown) errors.push_back(*row.error);
  }
  return errors;
}

JobParameter parameter_of(Fields fields) {
  JobParameter parameter;
  parameter.entry = fields.required<std::string>("entry");
  parameter.path = fields.required<std::vector<std::string>>("path");
  parameter.low = fields.required_in<double>("low", 1e-9, 1e9);
  parameter.high = fields.required_in<double>("high", parameter.low, 1e9);
  if (auto rows = fields.optional_nested("rows")) {
    parameter.architecture = rows->optional<std::string>("architecture", "");
    parameter.gpu = rows->optional<std::string>("gpu", "");
    parameter.precision = rows->optional<std::string>("precision", "");
    parameter.frameworks = rows->optional<std::vector<std::string>>("frameworks", {});
    parameter.experts = rows->optional<bool>("experts");
    rows->finish();
  }
  fields.finish();
  return parameter;
}

}  // namespace

std::string JobParameter::name() const { return entry + ": " + join(path, "."); }

std::vector<JobParameter> job_parameters_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  fields.ignore("about");
  std::vector<JobParameter> parameters;
  for (Fields& one : fields.list("parameters")) parameters.push_back(parameter_of(std::move(one)));
  fields.finish();
  return parameters;
}

JobFit fit_jobs(const std::vector<Measurement>& rows, Catalog catalog,
                std::vector<JobParameter> parameters, int rounds,
                const std::function<void(const std::string&)>& progress) {
  const std::vector<ValidatedRow> all = predicted(rows, catalog);
  const auto rows_of = [&](const JobParameter& parameter, bool all_rows) {
    std::set<std::string> ids;
    for (const ValidatedRow& row : all) {
      if (concerns(parameter, row, catalog) && (all_rows || shown(row.id))) ids.insert(row.id);
    }
    std::vector<Measurement> some;
    for (const Measurement& row : rows) {
      if (ids.contains(row.id)) some.push_back(row);
    }
    return some;
  };
  JobFit fit;
  std::set<std::string> changed;
  for (JobParameter& parameter : parameters) {
    const double before = value_of(catalog, parameter);
    fit.parameters.push_back({.parameter = std::move(parameter), .before = before});
  }
  for (int round = 0; round < rounds; ++round) {
    for (FittedParameter& one : fit.parameters) {
      const std::vector<Measurement> some = rows_of(one.parameter, false);
      if (some.empty()) continue;
      if (progress) progress(one.parameter.name());
      one.after = four_digits(least(one.parameter.low, one.parameter.high, [&](double value) {
        return loss(predicted(some, catalog.with(one.parameter.entry, one.parameter.path, value)));
      }));
      catalog = catalog.with(one.parameter.entry, one.parameter.path, one.after);
      changed.insert(one.parameter.entry);
    }
  }
  for (FittedParameter& one : fit.parameters) {
    const std::vector<ValidatedRow> now = predicted(rows_of(one.parameter, true), catalog);
    one.seen = statistics_of(errors_where(now, true));
    one.unseen = statistics_of(errors_where(now, false));
  }
  for (const std::string& name : changed) fit.entries.push_back(catalog.entry(name));
  return fit;
}

}  // namespace orrery

#include "fit/fit_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "tables/operators.h"

namespace orrery {
namespace {

using GroupKey = std::tuple<std::string, std::string, std::string, std::string>;

bool wanted(const std::string& word, const std::string& value) {
  return word.empty() || word == value;
}

std::map<GroupKey, std::vector<KernelRow>> groups_of(const KernelTable& table,
                                                     const Catalog& catalog,
                                                     const FitRequest& request) {
  std::map<GroupKey, std::vector<KernelRow>> groups;
  for (const KernelRow& row : table.rows) {
    if (!wanted(request.op, row.op) || !wanted(request.variant, row.variant) ||
        !wanted(request.library, row.library) || !wanted(request.gpu, row.gpu)) {
      continue;
    }
    if (!row.fitted || !operator_named(row.op) || !catalog.has(EntryKind::gpu, row.gpu)) continue;
    groups[{row.op, row.library, row.gpu, row.variant}].push_back(row);
  }
  return groups;
}

FitErrors errors_of(const std::vector<KernelRow>& rows, const std::vector<double>& times) {
  FitErrors errors;
  std::vector<double> list;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    list.push_back(std::abs(times[i] / rows[i].measured.value() - 1));
  }
  if (list.empty()) return errors;
  std::ranges::sort(list);
  const auto at = [&](double share) {
    return list[static_cast<std::size_t>(share * static_cast<double>(list.size() - 1))];
  };
  errors.n = static_cast<std::int64_t>(list.size());
  errors.median = std::round(at(0.5) * 1e4) / 1e4;
  errors.p90 = std::round(at(0.9) * 1e4) / 1e4;
  return errors;
}

// Evenly over the group, whatever its order.
std::vector<KernelRow> sample(std::vector<KernelRow> rows, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (count <= most) return rows;
  std::vector<KernelRow> some;
  for (std::int64_t i = 0; i < most; ++i) {
    some.push_back(std::move(rows[static_cast<std::size_t>(i * count / most)]));
  }
  return some;
}

std::vector<ParameterInfo> starting_from(const KernelSet* known, const Operator& model) {
  std::vector<ParameterInfo> parameters = model.parameters;
  if (!known) return parameters;
  const std::vector<double> values = model.values(*known);
  for (std::size_t i = 0; i < values.size(); ++i) {
    parameters[i].start = std::clamp(values[i], parameters[i].low, parameters[i].high);
  }
  return parameters;
}

// What no row depends on stays where the search began: it would only drift.
std::vector<double> without_drift(std::vector<double> values,
                                  const std::vector<ParameterInfo>& parameters,
                                  const std::vector<KernelRow>& rows, const Operator& model,
                                  const Device& device) {
  const std::vector<double> times = model.times(rows, device, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<double> trial = values;
    trial[i] = parameters[i].start;
    if (model.times(rows, device, trial) == times) values = trial;
  }
  return values;
}

}  // namespace

bool seen_by_fit(std::uint64_t family) { return family % 2 == 0; }

std::vector<KernelSet> fit_kernels(const KernelTable& table, const Catalog& catalog,
                                   const KernelSets& known, const FitRequest& request,
                                   const std::function<void(const std::string&)>& progress) {
  std::vector<KernelSet> sets;
  for (auto& [key, rows] : groups_of(table, catalog, request)) {
    const auto& [op, library, gpu_name, variant] = key;
    if (static_cast<std::int64_t>(rows.size()) < request.fewest) continue;
    if (progress) progress(op + " " + variant + ", " + library + " on " + gpu_name);
    const Operator& model = *operator_named(op);
    const Gpu gpu = catalog.gpu(gpu_name);
    const Device device = device_of(gpu);
    const auto middle = std::partition(
        rows.begin(), rows.end(), [](const KernelRow& row) { return seen_by_fit(row.family); });
    const std::vector<KernelRow> seen = sample({rows.begin(), middle}, request.rows);
    const std::vector<KernelRow> unseen(middle, rows.end());

    const FoundSet found = known.find(op, variant, library, gpu);
    const KernelSet* start = found.own_gpu && found.own_library ? found.set : nullptr;
    const std::vector<ParameterInfo> parameters = starting_from(start, model);
    const std::vector<double> found_values = minimise(
        parameters,
        [&](std::span<const double> at) {
          std::vector<double> errors = model.times(seen, device, at);
          for (std::size_t i = 0; i < seen.size(); ++i) {
            errors[i] = std::log(errors[i] / seen[i].measured.value());
          }
          return errors;
        },
        request.minimise);
    const std::vector<double> values = without_drift(found_values, parameters, seen, model, device);

    KernelSet set;
    set.op = op;
    set.variant = variant;
    set.library = library;
    set.gpu = gpu_name;
    set.architecture = gpu.architecture;
    set.preferred = start && start->preferred;
    model.write(values, set);
    const std::vector<double> written = model.values(set);  // with the digits of the file
    set.seen = errors_of(seen, model.times(seen, device, written));
    set.unseen = errors_of(unseen, model.times(unseen, device, written));
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace orrery

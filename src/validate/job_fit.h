// What only whole jobs can tell, fitted on published training runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "validate/measurement.h"
#include "validate/statistics.h"

namespace orrery {

/// A fact of the catalog that a fit moves, and the rows that it is fitted on.
struct JobParameter {
  std::string entry;              ///< of the catalog: "hopper-kernels"
  std::vector<std::string> path;  ///< of keys in it, to the fact
  double low = 0, high = 0;
  // Of the rows; empty: any.
  std::string architecture, gpu, precision;
  std::vector<std::string> frameworks;
  std::optional<bool> experts;

  std::string name() const;  ///< "hopper-kernels: matrices.16-bit.sustained"
};

/// Of data/fits/jobs.json.
std::vector<JobParameter> job_parameters_from_json(const Json& json, const std::string& place);

/// Errors of tokens/s over the rows of the parameter; `unseen` are those that the fit was not
/// shown.
struct FittedParameter {
  JobParameter parameter;
  double before = 0, after = 0;
  ErrorStatistics seen = {}, unseen = {};
};

struct JobFit {
  std::vector<FittedParameter> parameters;
  std::vector<CatalogEntry> entries;  ///< changed, with the new values
};

/// Moves each parameter in turn to where the sum of |log(predicted / measured)| over its rows is
/// least, each source weighted by the inverse root of its rows, `rounds` times over all. One row in
/// four, by a hash of its id, is not shown. `progress(name)` before each. Golden section in log
/// space: cost is `rounds` x parameters x 12 predictions of the parameter's rows.
JobFit fit_jobs(const std::vector<Measurement>& rows, Catalog catalog,
                std::vector<JobParameter> parameters, int rounds,
                const std::function<void(const std::string&)>& progress = {});

}  // namespace orrery

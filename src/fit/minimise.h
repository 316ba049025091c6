// The parameters that bring a model closest to what was measured.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "physics/parameters.h"

namespace orrery {

struct MinimiseOptions {
  int evaluations = 4000;  ///< of the model over all rows, for each start
  int starts = 2;          ///< from the parameters' own starts, then from around the best so far
  double scale = 0.1;      ///< errors far above this count by their size, not its square
};

/// `log_errors(values)`: log(predicted / measured), one a row. Minimises the sum of soft-L1 losses,
/// 2 s^2 (sqrt(1 + (e / s)^2) - 1), over the parameters' ranges in log space, by the subplex method
/// (Rowan 1990), which asks for no gradient: models have kinks where tiles change. Deterministic.
std::vector<double> minimise(
    std::span<const ParameterInfo> parameters,
    const std::function<std::vector<double>(std::span<const double>)>& log_errors,
    const MinimiseOptions& options = {});

}  // namespace orrery

#include "fit/minimise.h"

#include <algorithm>
#include <cmath>
#include <nlopt.hpp>

namespace orrery {
namespace {

double soft_l1(double error, double scale) {
  const double ratio = error / scale;
  return 2 * scale * scale * (std::sqrt(1 + ratio * ratio) - 1);
}

// Bounds a log error that is not finite, so that the search walks away from it.
constexpr double worst = 10;

}  // namespace

std::vector<double> minimise(
    std::span<const ParameterInfo> parameters,
    const std::function<std::vector<double>(std::span<const double>)>& log_errors,
    const MinimiseOptions& options) {
  std::vector<double> low, high, at;
  for (const ParameterInfo& parameter : parameters) {
    low.push_back(std::log(parameter.low));
    high.push_back(std::log(parameter.high));
    at.push_back(std::log(parameter.start));
  }
  const auto values = [](const std::vector<double>& logs) {
    std::vector<double> out;
    for (const double log : logs) out.push_back(std::exp(log));
    return out;
  };
  const nlopt::vfunc loss = [](const std::vector<double>& logs, std::vector<double>&, void* self) {
    return (*static_cast<const std::function<double(const std::vector<double>&)>*>(self))(logs);
  };
  std::function<double(const std::vector<double>&)> sum = [&](const std::vector<double>& logs) {
    double total = 0;
    for (const double error : log_errors(values(logs))) {
      total +=
          soft_l1(std::isfinite(error) ? std::clamp(error, -worst, worst) : worst, options.scale);
    }
    return total;
  };
  for (int start = 0; start < options.starts; ++start) {
    nlopt::opt search(nlopt::LN_SBPLX, static_cast<unsigned>(at.size()));
    search.set_lower_bounds(low);
    search.set_upper_bounds(high);
    search.set_min_objective(loss, &sum);
    search.set_maxeval(options.evaluations);
    search.set_xtol_rel(1e-5);
    search.set_initial_step(start == 0 ? 0.25 : 0.1);
    double least = 0;
    search.optimize(at, least);
  }
  return values(at);
}

}  // namespace orrery

#include "validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace orrery {

double quantile(std::vector<double> values, double at) {
  EXPECT(!values.empty() && at >= 0 && at <= 1);
  std::sort(values.begin(), values.end());
  const double position = at * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return std::lerp(values[low], values[high], position - static_cast<double>(low));
}

ErrorStatistics statistics_of(const std::vector<double>& errors) {
  ErrorStatistics out;
  out.n = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return out;
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  const double n = static_cast<double>(sizes.size());
  const auto within = [&](double limit) {
    const auto few =
        std::count_if(sizes.begin(), sizes.end(), [&](double e) { return e <= limit; });
    return static_cast<double>(few) / n;
  };
  out.median = quantile(sizes, 0.5);
  out.mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / n;
  out.p90 = quantile(sizes, 0.9);
  out.within_10 = within(0.10);
  out.within_15 = within(0.15);
  return out;
}

}  // namespace orrery

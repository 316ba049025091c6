// What a list of relative errors says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery {

/// The value below which a share `at` of the sorted values lies, by linear interpolation between
/// order statistics at position at x (n - 1), counted from 0. EXPECTs values and 0 <= at <= 1.
double quantile(std::vector<double> values, double at);

/// Of |error|; empty where there is no error at all.
struct ErrorStatistics {
  std::int64_t n = 0;
  std::optional<double> median, mean, p90;     // the median of an even count is between the two
  std::optional<double> within_10, within_15;  // share at or under 10 and 15 %
};

ErrorStatistics statistics_of(const std::vector<double>& errors);

}  // namespace orrery

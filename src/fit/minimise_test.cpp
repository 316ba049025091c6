#include "fit/minimise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery {
namespace {

// y = a + b x, a law with two parameters that its own points give back.
TEST(Minimise, FindsTheParametersThatMadeThePoints) {
  const std::vector<ParameterInfo> parameters = {{"a", 0.01, 100, 1, ""}, {"b", 0.01, 100, 1, ""}};
  const std::vector<double> points = {1, 2, 5, 10, 100};
  const auto errors = [&](std::span<const double> at) {
    std::vector<double> out;
    for (const double x : points) out.push_back(std::log((at[0] + at[1] * x) / (7 + 0.3 * x)));
    return out;
  };
  const std::vector<double> found = minimise(parameters, errors);
  EXPECT_NEAR(found[0], 7, 0.01);
  EXPECT_NEAR(found[1], 0.3, 0.001);
}

// One wild point moves a robust fit little.
TEST(Minimise, IsRobust) {
  const std::vector<ParameterInfo> parameters = {{"a", 0.01, 100, 1, ""}};
  const auto errors = [&](std::span<const double> at) {
    std::vector<double> out(20, std::log(at[0] / 5));
    out.push_back(std::log(at[0] / 50));
    return out;
  };
  EXPECT_NEAR(minimise(parameters, errors)[0], 5, 0.05);
}

}  // namespace
}  // namespace orrery

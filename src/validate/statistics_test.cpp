#include "validate/statistics.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

TEST(Statistics, QuantilesAreInterpolatedBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  // Ten values: position 0.9 x 9 = 8.1, so 9 + 0.1 x (10 - 9).
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9.1);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
  EXPECT_DOUBLE_EQ(quantile({7, 8}, 1), 8);
  EXPECT_THROW(quantile({}, 0.5), ContractError);
}

TEST(Statistics, SignsDoNotCancel) {
  const ErrorStatistics s = statistics_of({-0.10, 0.02, 0.12, -0.30});
  EXPECT_EQ(s.n, 4);
  EXPECT_DOUBLE_EQ(*s.median, 0.11);
  EXPECT_DOUBLE_EQ(*s.mean, 0.135);
  EXPECT_NEAR(*s.p90, 0.12 + 0.7 * 0.18, 1e-12);  // position 2.7
  EXPECT_DOUBLE_EQ(*s.within_10, 0.5);
  EXPECT_DOUBLE_EQ(*s.within_15, 0.75);
}

TEST(Statistics, NothingIsKnownOfNothing) {
  const ErrorStatistics s = statistics_of({});
  EXPECT_EQ(s.n, 0);
  EXPECT_FALSE(s.median || s.mean || s.p90 || s.within_10);
}

}  // namespace
}  // namespace orrery

// How a router spreads rows over experts, and what the fullest of several ranks gets.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// `experts` of a rank that get `rows` each; fractions where it is a mean over draws.
struct ExpertLoad {
  double experts = 0, rows = 0;
};
using ExpertLoads = std::vector<ExpertLoad>;

struct Routing {
  std::int64_t tokens = 0, topk = 1, experts = 1;
  std::int64_t ranks = 1;  ///< the experts lie on, in equal shares; divides `experts`
  double skew = 0;         ///< see below; 0: balanced
};

/// Experts with rows on the fullest rank, fullest first.
///
/// Balanced: tokens take experts in turn, at strides, so that all get the same. Skewed: the
/// popularity of an expert is drawn from a density that falls as popularity^-skew, between 1 and
/// 0.8 tokens (0.01 and 2 where there are fewer rows than experts), scaled to the rows there are
/// and cut at one row a token, as the aiconfigurator collector (ai-dynamo, 095f58a) draws it. The
/// answer is a mean over a dozen draws, always the same ones, in 24 steps at most.
ExpertLoads fullest_rank(const Routing& routing);

double rows_of(const ExpertLoads& loads);
double experts_of(const ExpertLoads& loads);

}  // namespace orrery

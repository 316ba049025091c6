#include "physics/moe_loads.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

namespace orrery {
namespace {

constexpr int draws = 12;
constexpr std::size_t most_steps = 24;

// Token t takes experts t + j stride, or spreads over a stride where tokens are fewer; rank 0 has
// the first experts and as many rows as any.
std::vector<double> balanced(const Routing& r, std::int64_t local) {
  const std::int64_t stride = (r.experts + r.topk - 1) / r.topk;
  if (r.tokens >= stride) {
    const double each = static_cast<double>(r.tokens) * static_cast<double>(r.topk) /
                        static_cast<double>(r.experts);
    return std::vector<double>(static_cast<std::size_t>(local), each);
  }
  std::vector<double> rows(static_cast<std::size_t>(local));
  for (std::int64_t t = 0; t < r.tokens; ++t) {
    for (std::int64_t j = 0; j < r.topk; ++j) {
      const std::int64_t expert = (t * stride / r.tokens + j * stride) % r.experts;
      if (expert < local) ++rows[static_cast<std::size_t>(expert)];
    }
  }
  return rows;
}

// The same on every machine, as std::uniform_real_distribution need not be.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// By the inverse of the distribution; skew 1 is its limit.
double popularity(double u, double low, double high, double skew) {
  if (std::abs(skew - 1) < 1e-6) return low * std::pow(high / low, u);
  const double e = 1 - skew;
  const double a = std::pow(low, e), b = std::pow(high, e);
  return std::pow(a + (b - a) * u, 1 / e);
}

// Raises the lowest of `rows` by `amount` in all, whole steps, none above `most`.
void raise(double* rows, std::size_t count, double amount, double most) {
  while (amount > 0) {
    const double lowest = *std::min_element(rows, rows + count);
    if (lowest >= most) return;
    double next = most, at_lowest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (rows[i] == lowest) ++at_lowest;
      if (rows[i] > lowest) next = std::min(next, rows[i]);
    }
    const double step = std::min(next - lowest, std::max(std::floor(amount / at_lowest), 1.0));
    for (std::size_t i = 0; i < count && amount > 0; ++i) {
      if (rows[i] != lowest) continue;
      rows[i] += step;
      amount -= step;
    }
  }
}

// The same for each rank in turn, one row at a time until all are placed.
void raise_in_turn(std::vector<double>& rows, std::size_t local, double amount, double most) {
  const std::size_t ranks = rows.size() / local;
  while (amount > 0) {
    std::vector<std::pair<double*, double>> open;  // ranks with room, and how much
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      double* first = rows.data() + rank * local;
      const double room =
          static_cast<double>(local) * most - std::accumulate(first, first + local, 0.0);
      if (room > 0) open.emplace_back(first, room);
    }
    if (open.empty()) return;
    const auto sharers = static_cast<double>(open.size());
    const double share = std::floor(amount / sharers), over = amount - share * sharers;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const double mine = std::min(share + (static_cast<double>(i) < over ? 1 : 0), open[i].second);
      raise(open[i].first, local, mine, most);
      amount -= mine;
    }
  }
}

// Whole rows of each expert, `tokens` at most, that add up. What is cut off or lost by rounding is
// given by the ranks in turn to their emptiest experts, and taken from their fullest.
std::vector<double> skewed(const Routing& r, std::mt19937_64& random) {
  const auto tokens = static_cast<double>(r.tokens);
  const double all = tokens * static_cast<double>(r.topk);
  const bool many = all > static_cast<double>(r.experts);
  const double low = many ? 1 : 0.01, high = many ? std::max(0.8 * tokens, 1.0) : 2;
  std::vector<double> rows(static_cast<std::size_t>(r.experts));
  for (double& row : rows) row = popularity(uniform(random), low, high, r.skew);
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (double& row : rows) row = std::min(std::round(row / sum * all), tokens);
  const auto local = static_cast<std::size_t>(r.experts / r.ranks);
  const double missing = all - std::accumulate(rows.begin(), rows.end(), 0.0);
  if (missing > 0) raise_in_turn(rows, local, missing, tokens);
  if (missing < 0) {
    for (double& row : rows) row = -row;
    raise_in_turn(rows, local, -missing, 0);
    for (double& row : rows) row = -row;
  }
  return rows;
}

std::vector<double> fullest(const std::vector<double>& rows, std::int64_t local) {
  std::vector<double> best;
  double most = -1;
  for (auto first = rows.begin(); first < rows.end(); first += local) {
    const double sum = std::accumulate(first, first + local, 0.0);
    if (sum <= most) continue;
    most = sum;
    best.assign(first, first + local);
  }
  return best;
}

// Equal shares of the experts that have rows, each with its mean.
ExpertLoads in_steps(std::vector<double> rows, double count) {
  std::erase(rows, 0.0);
  std::ranges::sort(rows, std::greater());
  ExpertLoads loads;
  const std::size_t steps = std::min(most_steps, rows.size());
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t first = i * rows.size() / steps, last = (i + 1) * rows.size() / steps;
    const double sum = std::accumulate(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                       rows.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
    const auto experts = static_cast<double>(last - first);
    if (!loads.empty() && loads.back().rows == sum / experts) {
      loads.back().experts += experts / count;
    } else {
      loads.push_back({experts / count, sum / experts});
    }
  }
  return loads;
}

}  // namespace

ExpertLoads fullest_rank(const Routing& r) {
  const std::int64_t local = std::max<std::int64_t>(r.experts / r.ranks, 1);
  if (r.skew <= 0) return in_steps(balanced(r, local), 1);
  std::mt19937_64 random(1);
  std::vector<double> rows;
  for (int draw = 0; draw < draws; ++draw) {
    const std::vector<double> rank = fullest(skewed(r, random), local);
    rows.insert(rows.end(), rank.begin(), rank.end());
  }
  return in_steps(std::move(rows), draws);
}

double rows_of(const ExpertLoads& loads) {
  double rows = 0;
  for (const ExpertLoad& load : loads) rows += load.experts * load.rows;
  return rows;
}

double experts_of(const ExpertLoads& loads) {
  double experts = 0;
  for (const ExpertLoad& load : loads) experts += load.experts;
  return experts;
}

}  // namespace orrery

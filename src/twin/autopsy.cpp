#include "twin/autopsy.h"

#include <algorithm>

#include "core/error.h"
#include "twin/remedy.h"
#include "twin/split.h"

namespace orrery {
namespace {

constexpr std::int64_t least_step = 256;         // tokens
constexpr std::int64_t most_tokens = 1 << 24;    // of a sequence, as in a request
constexpr std::int64_t most_in_batch = 1 << 28;  // tokens of a micro-batch
constexpr std::int64_t most_micro_batch = 1 << 14;

bool keeps_rules(const Scenario& scenario) {
  return broken_rules(scenario.strategy, setting_of(scenario)).empty();
}

bool fits(const Scenario& scenario) {
  return total(scenario_memory(scenario).footprint) <=
         capacity_of(scenario.cluster.gpu, scenario.framework);
}

// How many of 1, 2, ..., `count` have `holds`, which the first ones do and the others do not.
template <class Holds>
std::int64_t how_many(std::int64_t count, Holds holds) {
  std::int64_t low = 0, high = 1;
  while (high <= count && holds(high)) {
    low = high;
    high *= 2;
  }
  high = std::min(high, count + 1);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

bool better(const Fix& a, const Fix& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.step_ratio < b.step_ratio : a.peak < b.peak;
}

std::vector<Fix> fixes(const Scenario& scenario, const Answer& answer) {
  std::vector<Fix> list;
  for (const Remedy& remedy : remedies(scenario, answer.needed())) {
    const Answer then = price_scenario(remedy.scenario);
    EXPECT(then.priced);
    list.push_back({remedy.flags, remedy.needed, remedy.fits, then.step / answer.step});
  }
  std::stable_sort(list.begin(), list.end(), better);
  return list;
}

}  // namespace

std::int64_t sequence_step(const Strategy& s) {
  const std::int64_t even = 2 * s.cp * s.tp;
  return (least_step + even - 1) / even * even;
}

std::optional<std::int64_t> longest_sequence(const Scenario& scenario) {
  const std::int64_t step = sequence_step(scenario.strategy);
  const auto with = [&](std::int64_t steps) {
    Scenario changed = scenario;
    changed.strategy.seq_len = steps * step;
    return changed;
  };
  std::int64_t most = std::min(most_tokens, most_in_batch / scenario.strategy.micro_batch);
  if (scenario.model.position_rows > 0) most = std::min(most, scenario.model.position_rows);
  const std::int64_t found = how_many(most / step, [&](std::int64_t steps) {
    const Scenario changed = with(steps);
    return keeps_rules(changed) && fits(changed);
  });
  if (found == 0) return std::nullopt;
  return found * step;
}

std::optional<std::int64_t> largest_micro_batch(const Scenario& scenario) {
  const std::int64_t each = scenario.strategy.global_batch / scenario.strategy.dp;
  const std::int64_t most =
      std::min({each, most_micro_batch, most_in_batch / scenario.strategy.seq_len});
  std::vector<Scenario> valid;
  for (std::int64_t size = 1; size <= most; ++size) {
    if (each % size != 0) continue;
    Scenario changed = scenario;
    changed.strategy.micro_batch = size;
    if (keeps_rules(changed)) valid.push_back(std::move(changed));
  }
  const std::int64_t found = how_many(
      static_cast<std::int64_t>(valid.size()),
      [&](std::int64_t count) { return fits(valid[static_cast<std::size_t>(count - 1)]); });
  if (found == 0) return std::nullopt;
  return valid[static_cast<std::size_t>(found - 1)].strategy.micro_batch;
}

Autopsy autopsy(const Scenario& scenario, const Answer& answer) {
  EXPECT(answer.priced);
  return {buffers_at_peak(scenario, answer.memory.at), fixes(scenario, answer),
          better_split(scenario, answer), longest_sequence(scenario),
          largest_micro_batch(scenario)};
}

}  // namespace orrery

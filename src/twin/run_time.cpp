#include "twin/run_time.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "twin/twin.h"

namespace orrery {
namespace {

// Sequences that every step has at least: one round of micro-batches, over the stages too.
std::int64_t least_batch(const Strategy& s) { return s.dp * s.micro_batch * s.pp; }

using StepTimes = std::map<std::int64_t, Seconds>;  // by global batch

// The batch of the strategy, the first of the ramp and one between, in whole rounds.
StepTimes step_times(const Scenario& scenario, Seconds step) {
  const std::int64_t goal = scenario.strategy.global_batch, start = scenario.job.ramp->start;
  const std::int64_t round = least_batch(scenario.strategy);
  StepTimes times = {{goal, step}};
  for (const std::int64_t wanted : {start, (start + goal) / 2}) {
    Scenario smaller = scenario;
    smaller.tokens.reset();
    smaller.job.ramp.reset();
    const std::int64_t batch = (wanted + round - 1) / round * round;
    if (batch >= goal) continue;
    smaller.strategy.global_batch = batch;
    const Answer answer = price_scenario(smaller);
    if (answer.priced) times[batch] = answer.step;
  }
  return times;
}

// A step has a fixed part and one for each micro-batch, so times between two batches lie on a line;
// a batch below the least that is known takes as long as that.
Seconds step_at(const StepTimes& times, std::int64_t batch) {
  const auto above = times.lower_bound(batch);
  EXPECT(above != times.end());
  if (above == times.begin()) return above->second;
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(batch - below->first) / static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

}  // namespace

Seconds run_time(const Scenario& scenario, Seconds step) {
  EXPECT(scenario.tokens.has_value());
  const double a_sequence =
      (1 - scenario.job.padding) * static_cast<double>(scenario.strategy.seq_len);
  const auto time_of = [&](double tokens, std::int64_t batch, Seconds each) {
    return tokens / (a_sequence * static_cast<double>(batch)) * each;
  };
  const std::int64_t goal = scenario.strategy.global_batch;
  double left = scenario.tokens->value();
  Seconds time;
  if (const auto& ramp = scenario.job.ramp; ramp && ramp->start < goal) {
    const StepTimes times = step_times(scenario, step);
    const std::int64_t sizes = (goal - ramp->start) / ramp->step;
    const double each = std::min(left, ramp->tokens.value()) / static_cast<double>(sizes);
    for (std::int64_t batch = ramp->start; batch < goal; batch += ramp->step) {
      time += time_of(each, batch, step_at(times, batch));
    }
    left -= each * static_cast<double>(sizes);
  }
  return time + time_of(left, goal, step);
}

}  // namespace orrery

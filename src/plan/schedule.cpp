#include "plan/schedule.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace orrery {
namespace {

// The k-th forward (or backward) of an interleaved schedule: chunks take turns every pp
// micro-batches, backwards from the last chunk on.
Step interleaved_step(bool forward, std::int64_t k, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t turn = k % (pp * vpp) / pp;
  return {forward, static_cast<std::int32_t>(forward ? turn : vpp - 1 - turn)};
}

// Forwards that a stage runs before its first backward.
std::int64_t warm_up(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t total,
                     std::int64_t stage) {
  switch (schedule) {
    case Schedule::gpipe:
      return total;
    case Schedule::one_f_one_b:
      return std::min(pp - stage - 1, total);
    case Schedule::interleaved:
      return std::min((pp - stage - 1) * 2 + (vpp - 1) * pp, total);
    case Schedule::zero_bubble_h1:
    case Schedule::zero_bubble_v:
    case Schedule::dual_pipe:
      break;
  }
  return total;
}

Step kth_step(Schedule schedule, bool forward, std::int64_t k, std::int64_t pp, std::int64_t vpp,
              std::int64_t micro_batches) {
  if (schedule == Schedule::interleaved) return interleaved_step(forward, k, pp, vpp);
  const std::int64_t turn = k / micro_batches;  // chunk after chunk
  return {forward, static_cast<std::int32_t>(forward ? turn : vpp - 1 - turn)};
}

void mark_edges(std::vector<Step>& steps) {
  std::map<std::int32_t, Step*> first, last;
  for (Step& step : steps) {
    if (step.forward) {
      first.try_emplace(step.chunk, &step);
    } else {
      last[step.chunk] = &step;
    }
  }
  for (const auto& [chunk, step] : first) step->edge = true;
  for (const auto& [chunk, step] : last) step->edge = true;
}

}  // namespace

std::vector<Step> steps(Schedule schedule, std::int64_t pp, std::int64_t vpp,
                        std::int64_t micro_batches, std::int64_t stage) {
  EXPECT(pp >= 1 && vpp >= 1 && micro_batches >= 1 && 0 <= stage && stage < pp);
  EXPECT(vpp == 1 || schedule != Schedule::one_f_one_b);
  EXPECT(schedule != Schedule::interleaved || micro_batches % pp == 0);
  const std::int64_t total = micro_batches * vpp;
  const std::int64_t warm = warm_up(schedule, pp, vpp, total, stage);
  std::vector<Step> steps;
  steps.reserve(2 * total);
  for (std::int64_t k = 0; k < total + warm; ++k) {
    if (k < total) steps.push_back(kth_step(schedule, true, k, pp, vpp, micro_batches));
    if (k >= warm) steps.push_back(kth_step(schedule, false, k - warm, pp, vpp, micro_batches));
  }
  mark_edges(steps);
  return steps;
}

}  // namespace orrery

#include "plan/schedule.h"

#include <algorithm>
#include <deque>
#include <map>

#include "core/error.h"

namespace orrery {
namespace {

// --- whole backward passes ---------------------------------------------------------------------

// The k-th forward (or backward) of an interleaved schedule: chunks take turns every pp
// micro-batches, backwards from the last chunk on.
Step interleaved_step(StepPass pass, std::int64_t k, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t turn = k % (pp * vpp) / pp;
  return {pass, static_cast<std::int32_t>(pass == StepPass::forward ? turn : vpp - 1 - turn)};
}

// Forwards that a stage runs before its first backward.
std::int64_t warm_up(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t total,
                     std::int64_t stage) {
  if (schedule == Schedule::gpipe) return total;
  if (schedule == Schedule::one_f_one_b) return std::min(pp - stage - 1, total);
  return std::min((pp - stage - 1) * 2 + (vpp - 1) * pp, total);
}

Step kth_step(Schedule schedule, StepPass pass, std::int64_t k, std::int64_t pp, std::int64_t vpp,
              std::int64_t micro_batches) {
  if (schedule == Schedule::interleaved) return interleaved_step(pass, k, pp, vpp);
  const std::int64_t turn = k / micro_batches;  // chunk after chunk
  return {pass, static_cast<std::int32_t>(pass == StepPass::forward ? turn : vpp - 1 - turn)};
}

std::vector<Step> with_whole_backwards(Schedule schedule, std::int64_t pp, std::int64_t vpp,
                                       std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t total = micro_batches * vpp;
  const std::int64_t warm = warm_up(schedule, pp, vpp, total, stage);
  std::vector<Step> steps;
  const auto add = [&](StepPass pass, std::int64_t k) {
    steps.push_back(kth_step(schedule, pass, k, pp, vpp, micro_batches));
  };
  for (std::int64_t k = 0; k < total + warm; ++k) {
    if (k < total) add(StepPass::forward, k);
    if (k >= warm) add(StepPass::backward, k - warm);
  }
  return steps;
}

// --- split backward passes ---------------------------------------------------------------------

// Writes steps by their letters in the papers: F, B and W for forward, input gradient and weight
// gradient, and BW for a whole backward.
class Writer {
 public:
  // Micro-batches of each chunk; steps of later ones are left out.
  explicit Writer(std::int64_t micro_batches, bool flip_chunks = false)
      : micro_batches_(micro_batches), flip_chunks_(flip_chunks) {}

  void f(std::int32_t chunk) { add(StepPass::forward, chunk, forwards_); }
  void b(std::int32_t chunk) {
    if (add(StepPass::input_gradient, chunk, backwards_)) waiting_.push_back(chunk);
  }
  void bw(std::int32_t chunk) { add(StepPass::backward, chunk, backwards_); }
  void w(std::int32_t chunk) {
    const auto found = std::find(waiting_.begin(), waiting_.end(), chunk);
    if (found == waiting_.end()) return;
    waiting_.erase(found);
    push(StepPass::weight_gradient, chunk);
  }
  // The weight gradient that has waited longest.
  void w() {
    if (!waiting_.empty()) w(waiting_.front());
  }
  void all_w(std::int32_t chunk) {
    while (std::count(waiting_.begin(), waiting_.end(), chunk) > 0) w(chunk);
  }

  std::vector<Step> take() { return std::move(steps_); }

 private:
  bool add(StepPass pass, std::int32_t chunk, std::map<std::int32_t, std::int64_t>& count) {
    if (count[chunk]++ >= micro_batches_) return false;
    push(pass, chunk);
    return true;
  }
  void push(StepPass pass, std::int32_t chunk) {
    steps_.push_back({pass, flip_chunks_ ? 1 - chunk : chunk});
  }

  std::int64_t micro_batches_;
  bool flip_chunks_;
  std::vector<Step> steps_;
  std::map<std::int32_t, std::int64_t> forwards_, backwards_;
  std::deque<std::int32_t> waiting_;  // chunks whose weight gradients are due
};

std::vector<Step> zero_bubble_h1(std::int64_t pp, std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t warm = std::min(pp - stage - 1, micro_batches);
  Writer steps(micro_batches);
  for (std::int64_t k = 0; k < micro_batches + warm; ++k) {
    steps.f(0);
    if (k < warm) continue;
    steps.b(0);
    if (k - warm >= stage) steps.w(0);
  }
  steps.all_w(0);
  return steps.take();
}

// As PyTorch's ScheduleZBVZeroBubble writes figure 2 of arXiv 2405.15362 down. Fewer micro-batches
// than fill the pipeline run as the first ones of as many as do.
std::vector<Step> zero_bubble_v(std::int64_t pp, std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t filled = std::max(2 * pp - 1, micro_batches);
  const std::int64_t to_turn = pp - stage;  // stages from here to the turn of the V
  Writer steps(micro_batches);
  for (std::int64_t i = 0; i < 2 * to_turn - 1; ++i) steps.f(0);
  for (std::int64_t i = 0; i < stage; ++i) {
    steps.f(1);
    steps.f(0);
  }
  for (std::int64_t i = 0; i < to_turn; ++i) {
    steps.f(1);
    steps.b(1);
    steps.w(1);
  }
  // Chunk 0 has run 2 pp - 1 - stage forwards, chunk 1 pp of them.
  const std::int64_t more = filled - pp;
  for (std::int64_t i = 0; i < more; ++i) {
    if (i < filled - (2 * pp - 1 - stage)) steps.f(0);
    steps.b(0);
    steps.w(0);
    steps.f(1);
    steps.b(1);
    steps.w(1);
  }
  for (std::int64_t i = 0; i < stage; ++i) {
    steps.b(0);
    steps.b(1);
  }
  for (std::int64_t i = 0; i < to_turn; ++i) {
    steps.b(0);
    steps.w(0);
  }
  steps.all_w(1);
  steps.all_w(0);
  return steps.take();
}

// In the words of DeepSeek's code, for the first half of the stages; in the second half the two
// directions change places.
std::vector<Step> dual_pipe(std::int64_t pp, std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t from_end = std::min(stage, pp - 1 - stage);
  const std::int64_t from_middle = pp / 2 - 1 - from_end;
  const std::int64_t last = from_end + 1;
  Writer steps(micro_batches / 2, stage >= pp / 2);
  for (std::int64_t i = 0; i < 2 * from_middle; ++i) steps.f(0);
  for (std::int64_t i = 0; i < last; ++i) {
    steps.f(0);
    steps.f(1);
  }
  for (std::int64_t i = 0; i < from_middle; ++i) {
    steps.b(1);
    steps.w();
    steps.f(1);
  }
  for (std::int64_t i = 0; i < micro_batches / 2 - pp + last; ++i) {
    steps.f(0);
    steps.bw(1);
    steps.f(1);
    steps.bw(0);
  }
  for (std::int64_t i = 0; i < from_middle; ++i) {
    steps.bw(1);
    steps.f(1);
    steps.bw(0);
  }
  for (std::int64_t i = 0; i < 2 * last; ++i) {  // the second half of them splits
    const std::int32_t chunk = i % 2 == 0 ? 1 : 0;
    i < last ? steps.bw(chunk) : steps.b(chunk);
  }
  for (std::int64_t i = 0; i < from_middle; ++i) {
    steps.w();
    steps.b(0);
  }
  for (std::int64_t i = 0; i < last; ++i) steps.w();
  return steps.take();
}

void mark_edges(std::vector<Step>& steps) {
  std::map<std::int32_t, Step*> first, last;
  for (Step& step : steps) {
    if (step.forward()) first.try_emplace(step.chunk, &step);
    if (!step.forward() && step.pass != StepPass::input_gradient) last[step.chunk] = &step;
  }
  for (const auto& [chunk, step] : first) step->edge = true;
  for (const auto& [chunk, step] : last) step->edge = true;
}

std::vector<Step> unmarked_steps(Schedule schedule, std::int64_t pp, std::int64_t vpp,
                                 std::int64_t micro_batches, std::int64_t stage) {
  switch (schedule) {
    case Schedule::zero_bubble_h1:
      return zero_bubble_h1(pp, micro_batches, stage);
    case Schedule::zero_bubble_v:
      return zero_bubble_v(pp, micro_batches, stage);
    case Schedule::dual_pipe:
      return dual_pipe(pp, micro_batches, stage);
    case Schedule::gpipe:
    case Schedule::one_f_one_b:
    case Schedule::interleaved:
      break;
  }
  return with_whole_backwards(schedule, pp, vpp, micro_batches, stage);
}

}  // namespace

std::string_view name_of(StepPass pass) {
  switch (pass) {
    case StepPass::forward:
      return "forward";
    case StepPass::backward:
      return "backward";
    case StepPass::input_gradient:
      return "input gradient";
    case StepPass::weight_gradient:
      return "weight gradient";
  }
  return "";
}

bool splits_backward(Schedule schedule) {
  return schedule == Schedule::zero_bubble_h1 || schedule == Schedule::zero_bubble_v ||
         schedule == Schedule::dual_pipe;
}

std::vector<Step> steps(Schedule schedule, std::int64_t pp, std::int64_t vpp,
                        std::int64_t micro_batches, std::int64_t stage) {
  EXPECT(pp >= 1 && vpp >= 1 && micro_batches >= 1 && 0 <= stage && stage < pp);
  EXPECT(vpp == 1 || schedule == Schedule::gpipe || schedule == Schedule::interleaved ||
         schedule == Schedule::zero_bubble_v || schedule == Schedule::dual_pipe);
  EXPECT(schedule != Schedule::interleaved || micro_batches % pp == 0);
  EXPECT(schedule != Schedule::zero_bubble_v || vpp == 2);
  EXPECT(schedule != Schedule::dual_pipe ||
         (vpp == 2 && pp % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2 * pp));
  std::vector<Step> steps = unmarked_steps(schedule, pp, vpp, micro_batches, stage);
  mark_edges(steps);
  return steps;
}

// --- placement ---------------------------------------------------------------------------------

Placement::Placement(Schedule schedule, std::int64_t pp, std::int64_t vpp)
    : schedule_(schedule), pp_(pp), chunks_(vpp) {}

std::int64_t Placement::part(Place place) const {
  const auto [stage, chunk] = place;
  const bool comes_back = chunk == 1 && (schedule_ == Schedule::zero_bubble_v || copies() == 2);
  const std::int64_t along = comes_back ? pp_ - 1 - stage : stage;
  return copies() == 2 ? along : chunk * pp_ + along;
}

Place Placement::place(std::int64_t part, std::int64_t copy) const {
  EXPECT(0 <= part && part < parts() && copy < copies());
  const std::int64_t chunk = copies() == 2 ? copy : part / pp_;
  const bool comes_back = chunk == 1 && (schedule_ == Schedule::zero_bubble_v || copies() == 2);
  return {comes_back ? pp_ - 1 - part % pp_ : part % pp_, chunk};
}

std::optional<Place> Placement::next(Place place) const { return neighbour(place, 1); }
std::optional<Place> Placement::previous(Place place) const { return neighbour(place, -1); }

std::optional<Place> Placement::neighbour(Place from, std::int64_t distance) const {
  const std::int64_t to = part(from) + distance;
  if (to < 0 || to == parts()) return {};
  return place(to, copies() == 2 ? from.chunk : 0);
}

}  // namespace orrery

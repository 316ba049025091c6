#include "twin/split.h"

#include <utility>

namespace orrery {
namespace {

constexpr std::int64_t most_taken =
    8;  // layers; a head of 128k words weighs as much as four of a 1B model
constexpr double worthwhile = 0.995;  // of the present step: closer ones are told apart by nothing

// `layers` over `chunks`, the ends holding that many fewer than their even share; empty if one
// would hold none.
std::vector<std::int64_t> spread(std::int64_t layers, std::int64_t chunks, std::int64_t off_first,
                                 std::int64_t off_last) {
  const std::int64_t places = layers + off_first + off_last;
  std::vector<std::int64_t> split(chunks, places / chunks);
  // What is left over goes to the middle, then to the first.
  for (std::int64_t i = 0; i < places % chunks; ++i) ++split[i + 1 < chunks - 1 ? i + 1 : 0];
  split.front() -= off_first;
  split.back() -= off_last;
  if (split.front() < 1 || split.back() < 1) return {};
  return split;
}

class Search {
 public:
  Search(const Scenario& scenario, const Answer& now) : scenario_(scenario), now_(now) {}

  std::optional<StageSplit> run() {
    const std::int64_t chunks = scenario_.strategy.pp * scenario_.strategy.vpp;
    for (std::int64_t first = 0; first <= most_taken; ++first) {
      bool faster = false;
      int misses = 0;  // in a row; one may be a split that was tried before
      for (std::int64_t last = 0; last <= most_taken && misses < 3; ++last) {
        const bool better = tried(spread(scenario_.model.layers, chunks, first, last));
        faster |= better;
        misses = better || !faster ? 0 : misses + 1;
      }
      if (first > 0 && !faster) break;
    }
    return std::move(best_);
  }

 private:
  // Whether it beats all before it.
  bool tried(const std::vector<std::int64_t>& split) {
    if (split.empty()) return false;
    Scenario other = scenario_;
    other.strategy.stage_layers = split;
    const Answer answer = price_scenario(other, {}, Unfit::leave);
    if (!answer.priced || !answer.feasible) return false;
    const Seconds limit = best_ ? best_->step : worthwhile * now_.step;
    if (answer.step >= limit) return false;
    best_ = StageSplit{split, answer.step};
    return true;
  }

  const Scenario& scenario_;
  const Answer& now_;
  std::optional<StageSplit> best_;
};

}  // namespace

std::optional<StageSplit> better_split(const Scenario& scenario, const Answer& now) {
  const Strategy& s = scenario.strategy;
  const bool in_order = s.schedule != Schedule::zero_bubble_v && s.schedule != Schedule::dual_pipe;
  if (s.pp == 1 || !in_order || !now.priced || !now.feasible) return {};
  return Search(scenario, now).run();
}

}  // namespace orrery

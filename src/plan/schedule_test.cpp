#include "plan/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

struct Case {
  Schedule schedule;
  std::int64_t pp, vpp, micro_batches;
};

const std::vector<Case> cases = {
    {Schedule::gpipe, 1, 1, 1},          {Schedule::gpipe, 4, 1, 8},
    {Schedule::one_f_one_b, 1, 1, 4},    {Schedule::one_f_one_b, 2, 1, 1},
    {Schedule::one_f_one_b, 4, 1, 8},    {Schedule::one_f_one_b, 8, 1, 3},
    {Schedule::interleaved, 2, 2, 2},    {Schedule::interleaved, 4, 2, 8},
    {Schedule::interleaved, 4, 3, 4},    {Schedule::interleaved, 8, 6, 32},
    {Schedule::interleaved, 16, 8, 64},  {Schedule::gpipe, 3, 1, 100},
    {Schedule::zero_bubble_h1, 1, 1, 3}, {Schedule::zero_bubble_h1, 4, 1, 2},
    {Schedule::zero_bubble_h1, 4, 1, 4}, {Schedule::zero_bubble_h1, 8, 1, 24},
    {Schedule::zero_bubble_v, 1, 2, 2},  {Schedule::zero_bubble_v, 4, 2, 1},
    {Schedule::zero_bubble_v, 4, 2, 5},  {Schedule::zero_bubble_v, 4, 2, 8},
    {Schedule::zero_bubble_v, 8, 2, 32}, {Schedule::dual_pipe, 2, 2, 4},
    {Schedule::dual_pipe, 4, 2, 8},      {Schedule::dual_pipe, 8, 2, 20},
    {Schedule::dual_pipe, 10, 2, 20},    {Schedule::dual_pipe, 16, 2, 64},
};

std::vector<Step> of(const Case& c, std::int64_t stage) {
  return steps(c.schedule, c.pp, c.vpp, c.micro_batches, stage);
}

Placement placement(const Case& c) { return Placement(c.schedule, c.pp, c.vpp); }

std::int64_t micro_batches_of_chunk(const Case& c) {
  return c.micro_batches / placement(c).copies();
}

bool starts_gradient(const Step& step) {
  return step.pass == StepPass::backward || step.pass == StepPass::input_gradient;
}
bool ends_gradient(const Step& step) {
  return step.pass == StepPass::backward || step.pass == StepPass::weight_gradient;
}

// Micro-batches times chunks whose activations a stage holds, those that wait for their weight
// gradients included.
std::int64_t peak_in_flight(const std::vector<Step>& steps) {
  std::int64_t now = 0, peak = 0;
  for (const Step& step : steps) {
    now += step.forward() ? 1 : ends_gradient(step) ? -1 : 0;
    peak = std::max(peak, now);
  }
  return peak;
}

struct Times {
  double forward, input_gradient, weight_gradient;
  double of(StepPass pass) const {
    return pass == StepPass::forward           ? forward
           : pass == StepPass::input_gradient  ? input_gradient
           : pass == StepPass::weight_gradient ? weight_gradient
                                               : input_gradient + weight_gradient;
  }
};

// Plays all stages against each other: steps start when the stage is free and what they need has
// come. Sending takes no time.
class Replay {
 public:
  // `pairs`: a forward and a whole backward right after it are one piece of work, as in DualPipe,
  // which mixes their kernels: both start when both can and both end at the end.
  Replay(const Case& c, Times times, bool pairs = false)
      : case_(c), times_(times), pairs_(pairs), placement_(placement(c)) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) stages_.push_back({of(c, stage)});
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int64_t stage = 0; stage < c.pp; ++stage) {
        while (run_next(stage)) moved = true;
      }
    }
  }

  std::int64_t stuck_steps() const {
    std::int64_t stuck = 0;
    for (const Stage& s : stages_) stuck += s.steps.size() - s.next;
    return stuck;
  }
  // Of the whole step, which ends when the last stage does.
  double bubble() const {
    double end = 0;
    for (const Stage& s : stages_) end = std::max(end, s.end);
    return end - work();
  }
  // The longest that a stage idles between its own first and last step.
  double idle_inside() const {
    double longest = 0;
    for (const Stage& s : stages_) longest = std::max(longest, s.end - s.start - work());
    return longest;
  }

 private:
  struct Stage {
    std::vector<Step> steps;
    std::size_t next = 0;
    double start = -1, end = 0;
    std::map<std::pair<StepPass, std::int64_t>, std::int64_t> count = {};
  };
  // What has been computed, and when: which pass, of which copy, part and micro-batch.
  using Result = std::tuple<StepPass, std::int64_t, std::int64_t, std::int64_t>;

  double work() const {
    return static_cast<double>(micro_batches_of_chunk(case_) * placement_.chunks()) *
           (times_.forward + times_.input_gradient + times_.weight_gradient);
  }

  std::size_t length(const Stage& s) const {
    const bool pair = pairs_ && s.next + 1 < s.steps.size() && s.steps[s.next].forward() &&
                      s.steps[s.next + 1].pass == StepPass::backward;
    return pair ? 2 : 1;
  }

  static StepPass named(StepPass pass) {
    return pass == StepPass::backward ? StepPass::input_gradient : pass;
  }

  Result result(const Step& step, std::int64_t stage) {
    const std::int64_t copy = placement_.copies() == 2 ? step.chunk : 0;
    return {named(step.pass), copy, placement_.part({stage, step.chunk}),
            stages_[stage].count[{named(step.pass), step.chunk}]};
  }

  std::vector<Result> needs(const Result& result) const {
    const auto [pass, copy, part, n] = result;
    std::vector<Result> needs;
    if (pass == StepPass::forward && part > 0) needs.push_back({pass, copy, part - 1, n});
    if (pass == StepPass::input_gradient) {
      needs.push_back({StepPass::forward, copy, part, n});
      if (part < placement_.parts() - 1) needs.push_back({pass, copy, part + 1, n});
    }
    if (pass == StepPass::weight_gradient) {
      needs.push_back({StepPass::input_gradient, copy, part, n});
    }
    return needs;
  }

  bool run_next(std::int64_t stage) {
    Stage& s = stages_[stage];
    if (s.next == s.steps.size()) return false;
    const std::size_t last = s.next + length(s);
    double start = s.end, time = 0;
    std::vector<Result> results;
    for (std::size_t i = s.next; i < last; ++i) {
      results.push_back(result(s.steps[i], stage));
      time += times_.of(s.steps[i].pass);
      for (const Result& need : needs(results.back())) {
        if (!done_.count(need)) return false;
        start = std::max(start, done_.at(need));
      }
    }
    if (s.start < 0) s.start = start;
    s.end = start + time;
    for (const Result& result : results) done_[result] = s.end;
    for (; s.next < last; ++s.next) {
      const Step& step = s.steps[s.next];
      ++s.count[{named(step.pass), step.chunk}];
      if (step.pass == StepPass::backward) ++s.count[{StepPass::weight_gradient, step.chunk}];
    }
    return true;
  }

  Case case_;
  Times times_;
  bool pairs_;
  Placement placement_;
  std::vector<Stage> stages_;
  std::map<Result, double> done_;
};

std::int64_t size_of(const std::vector<Folded>& folded) {
  std::int64_t size = 0;
  for (const Folded& node : folded) size += 1 + size_of(node.body);
  return size;
}

TEST(Schedule, EachChunkRunsEachMicroBatchForwardsAndBackwardsOnce) {
  for (const Case& c : cases) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      std::map<std::int32_t, std::array<std::int64_t, 3>> count;
      for (const Step& step : of(c, stage)) {
        count[step.chunk][0] += step.forward();
        count[step.chunk][1] += starts_gradient(step);
        count[step.chunk][2] += ends_gradient(step);
      }
      const std::int64_t n = micro_batches_of_chunk(c);
      EXPECT_EQ(count.size(), placement(c).chunks());
      for (const auto& [chunk, of] : count) EXPECT_THAT(of, testing::ElementsAre(n, n, n));
    }
  }
}

TEST(Schedule, EveryForwardComesBeforeItsBackwardAndInputGradientsBeforeWeightGradients) {
  for (const Case& c : cases) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      std::map<std::int32_t, std::int64_t> forwards, gradients, ended;
      for (const Step& step : of(c, stage)) {
        forwards[step.chunk] += step.forward();
        gradients[step.chunk] += starts_gradient(step);
        ended[step.chunk] += ends_gradient(step);
        ASSERT_GE(forwards[step.chunk], gradients[step.chunk]);
        ASSERT_GE(gradients[step.chunk], ended[step.chunk]);
      }
    }
  }
}

// A whole backward pass closes the oldest micro-batch, so none may wait for its weight gradient.
TEST(Schedule, NoWholeBackwardOvertakesAWeightGradientOfItsChunk) {
  for (const Case& c : cases) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      std::map<std::int32_t, std::int64_t> waiting;
      for (const Step& step : of(c, stage)) {
        ASSERT_TRUE(step.pass != StepPass::backward || waiting[step.chunk] == 0);
        waiting[step.chunk] += starts_gradient(step) - ends_gradient(step);
      }
    }
  }
}

TEST(Schedule, StagesNeverWaitForEachOtherForever) {
  for (const Case& c : cases) {
    EXPECT_EQ(Replay(c, {1, 1, 1}).stuck_steps(), 0)
        << name_of(c.schedule) << " " << c.pp << " " << c.vpp << " " << c.micro_batches;
    EXPECT_EQ(Replay(c, {1, 1, 1}, c.schedule == Schedule::dual_pipe).stuck_steps(), 0);
  }
}

// --- bubbles, in the papers' formulas
// --------------------------------------------------------------

const Times equal = {1, 1, 1}, unequal = {10, 12, 8};

TEST(Schedule, BubbleOf1F1BAndGPipe) {
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::gpipe}) {
    EXPECT_DOUBLE_EQ(Replay({schedule, 4, 1, 8}, unequal).bubble(), 3 * (10 + 12 + 8));
  }
}

TEST(Schedule, BubbleOfInterleavingIsDividedByTheChunks) {  // arXiv 2104.04473, section 2.2
  EXPECT_DOUBLE_EQ(Replay({Schedule::interleaved, 4, 2, 8}, unequal).bubble(), 3 * (10 + 12 + 8));
}

TEST(Schedule, BubbleOfZeroBubbleH1) {  // arXiv 2401.10241, table 1: (p - 1)(F + B - W)
  for (const std::int64_t pp : {2, 4, 8}) {
    for (const std::int64_t micro_batches : {pp, 3 * pp}) {
      const Case c = {Schedule::zero_bubble_h1, pp, 1, micro_batches};
      const auto others = static_cast<double>(pp - 1);
      EXPECT_DOUBLE_EQ(Replay(c, equal).bubble(), others * (1 + 1 - 1));
      EXPECT_DOUBLE_EQ(Replay(c, unequal).bubble(), others * (10 + 12 - 8));
    }
  }
}

// arXiv 2405.15362, figure 2: where the three take as long as each other, no stage ever waits
// between its first and its last step. The stages start one after another, so a step that ends for
// all at once loses that.
TEST(Schedule, ZeroBubbleVHasNoBubbleButTheStart) {
  for (const std::int64_t pp : {1, 2, 4, 8}) {
    for (const std::int64_t micro_batches : {2 * pp, 4 * pp + 1}) {
      const Replay replay({Schedule::zero_bubble_v, pp, 2, micro_batches}, equal);
      EXPECT_DOUBLE_EQ(replay.idle_inside(), 0);
      EXPECT_DOUBLE_EQ(replay.bubble(), static_cast<double>(pp - 1));
    }
  }
}

// arXiv 2412.19437, table 2: (p/2 - 1)(F&B + B - 3 W), where B is a whole backward pass and F&B a
// forward and a backward in one.
TEST(Schedule, BubbleOfDualPipe) {
  for (const std::int64_t pp : {2, 4, 8, 16}) {
    for (const std::int64_t micro_batches : {2 * pp, 2 * pp + 4, 8 * pp}) {
      const Case c = {Schedule::dual_pipe, pp, 2, micro_batches};
      const auto half = static_cast<double>(pp / 2 - 1);
      EXPECT_DOUBLE_EQ(Replay(c, equal, true).bubble(), half * (3 + 2 - 3));
      // Each sent on as soon as it is done, it is as ZB-H1's of half as many stages.
      EXPECT_DOUBLE_EQ(Replay(c, equal).bubble(), half * (1 + 1 - 1));
    }
  }
}

// Papers as above; zb-h1 and zb-v hold as much as 1F1B's first stage, the latter in half-size
// chunks, dualpipe one more.
std::int64_t expected_in_flight(const Case& c, std::int64_t stage) {
  switch (c.schedule) {
    case Schedule::gpipe:
      return c.micro_batches * c.vpp;
    case Schedule::one_f_one_b:
      return c.pp - stage;
    case Schedule::interleaved:
      return 2 * (c.pp - stage - 1) + (c.vpp - 1) * c.pp + 1;
    case Schedule::zero_bubble_h1:
      return c.pp;
    case Schedule::zero_bubble_v:
      return 2 * c.pp;
    case Schedule::dual_pipe:
      return c.pp + 1;
  }
  return 0;
}

TEST(Schedule, MicroBatchesInFlight) {
  for (const Case& c : cases) {
    const std::int64_t total = c.micro_batches * c.vpp;
    if (c.schedule == Schedule::zero_bubble_v && c.micro_batches < 2 * c.pp) continue;  // fewer
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      EXPECT_EQ(peak_in_flight(of(c, stage)), std::min(expected_in_flight(c, stage), total))
          << name_of(c.schedule) << " " << c.pp << " " << stage;
    }
  }
}

std::string letters(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) {
    const char* letter = step.forward()                           ? "F"
                         : step.pass == StepPass::input_gradient  ? "B"
                         : step.pass == StepPass::weight_gradient ? "W"
                                                                  : "BW";
    text += letter + std::to_string(step.chunk) + " ";
  }
  return text;
}

// Figure 3 of arXiv 2401.10241, second and last of four devices, without the batches of the middle.
TEST(Schedule, ZeroBubbleH1OrderIsThePapers) {
  EXPECT_EQ(letters(steps(Schedule::zero_bubble_h1, 4, 1, 5, 1)),
            "F0 F0 F0 B0 F0 B0 W0 F0 B0 W0 B0 W0 B0 W0 W0 ");
  EXPECT_EQ(letters(steps(Schedule::zero_bubble_h1, 4, 1, 5, 3)),
            "F0 B0 F0 B0 F0 B0 F0 B0 W0 F0 B0 W0 W0 W0 W0 ");
}

TEST(Schedule, DualPipeIsTheSameFromBothEnds) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    std::vector<Step> mirrored = steps(Schedule::dual_pipe, 8, 2, 20, 7 - stage);
    for (Step& step : mirrored) step.chunk = 1 - step.chunk;
    EXPECT_EQ(letters(mirrored), letters(steps(Schedule::dual_pipe, 8, 2, 20, stage)));
  }
}

TEST(Schedule, InterleavedOrderIsMegatrons) {
  // pp 2, vpp 2, 4 micro-batches, first stage: 4 warm-up forwards
  EXPECT_EQ(letters(steps(Schedule::interleaved, 2, 2, 4, 0)),
            "F0 F0 F1 F1 F0 BW1 F0 BW1 F1 BW0 F1 BW0 BW1 BW1 BW0 BW0 ");
}

TEST(Schedule, EdgesAreTheFirstForwardAndTheLastBackwardOfEachChunk) {
  const std::vector<Step> s = steps(Schedule::interleaved, 2, 2, 4, 0);
  std::vector<std::size_t> edges;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i].edge) edges.push_back(i);
  }
  EXPECT_EQ(edges, (std::vector<std::size_t>{0, 2, 13, 15}));
}

TEST(Schedule, TheLastWeightGradientIsAnEdgeWhereBackwardsAreSplit) {
  const std::vector<Step> s = steps(Schedule::zero_bubble_h1, 4, 1, 5, 3);
  for (std::size_t i = 0; i < s.size(); ++i) EXPECT_EQ(s[i].edge, i == 0 || i == s.size() - 1);
}

// --- placement
// -------------------------------------------------------------------------------------

TEST(Placement, PartsFollowEachOtherFromStageToStage) {
  for (const Case& c : cases) {
    const Placement placement(c.schedule, c.pp, c.vpp);
    for (std::int64_t copy = 0; copy < placement.copies(); ++copy) {
      std::optional<Place> at = placement.place(0, copy), before;
      for (std::int64_t part = 0; part < placement.parts(); ++part) {
        ASSERT_TRUE(at);
        EXPECT_EQ(*at, placement.place(part, copy));
        EXPECT_EQ(placement.part(*at), part);
        EXPECT_EQ(placement.previous(*at), before);
        before = std::exchange(at, placement.next(*at));
      }
      EXPECT_FALSE(at);
    }
    EXPECT_EQ(placement.parts() * placement.copies(), c.pp * placement.chunks());
  }
}

TEST(Placement, InterleavedGoesRoundTheVComesBackAndDualPipeMirrors) {
  const Placement ring(Schedule::interleaved, 4, 2), v(Schedule::zero_bubble_v, 4, 2),
      dual(Schedule::dual_pipe, 4, 2);
  EXPECT_EQ(ring.next({3, 0}), (Place{0, 1}));
  EXPECT_EQ(v.next({3, 0}), (Place{3, 1}));
  EXPECT_EQ(v.next({1, 1}), (Place{0, 1}));
  EXPECT_EQ(v.part({0, 1}), 7);
  EXPECT_EQ(dual.part({1, 0}), 1);
  EXPECT_EQ(dual.part({1, 1}), 2);
  EXPECT_EQ(dual.next({1, 1}), (Place{0, 1}));
  EXPECT_EQ(dual.next({0, 1}), std::nullopt);
}

TEST(Fold, UnfoldGivesTheSequenceBack) {
  for (const Case& c : cases) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      EXPECT_EQ(unfold(fold(of(c, stage))), of(c, stage));
    }
  }
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const auto draw = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
    const std::uint32_t kinds = 1 + draw(3);
    std::vector<Step> sequence(draw(60));
    for (Step& step : sequence) step = {static_cast<StepPass>(draw(4)), draw(kinds)};
    ASSERT_EQ(unfold(fold(sequence)), sequence);
  }
}

TEST(Fold, SizeDoesNotGrowWithMicroBatches) {
  for (const Case& c :
       {Case{Schedule::gpipe, 4, 1, 64}, Case{Schedule::one_f_one_b, 4, 1, 64},
        Case{Schedule::one_f_one_b, 16, 1, 64}, Case{Schedule::interleaved, 8, 6, 64},
        Case{Schedule::interleaved, 16, 8, 64}, Case{Schedule::zero_bubble_h1, 16, 1, 64},
        Case{Schedule::zero_bubble_v, 16, 2, 64}, Case{Schedule::dual_pipe, 16, 2, 64}}) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      Case longer = c;
      longer.micro_batches = 4096;
      const std::int64_t size = size_of(fold(of(c, stage)));
      EXPECT_EQ(size_of(fold(of(longer, stage))), size) << c.pp << " " << c.vpp << " " << stage;
      EXPECT_LE(size, 20 * (placement(c).chunks() + 1));
    }
  }
}

}  // namespace
}  // namespace orrery

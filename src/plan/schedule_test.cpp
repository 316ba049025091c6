#include "plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace orrery {
namespace {

struct Case {
  Schedule schedule;
  std::int64_t pp, vpp, micro_batches;
};

const std::vector<Case> cases = {
    {Schedule::gpipe, 1, 1, 1},         {Schedule::gpipe, 4, 1, 8},
    {Schedule::one_f_one_b, 1, 1, 4},   {Schedule::one_f_one_b, 2, 1, 1},
    {Schedule::one_f_one_b, 4, 1, 8},   {Schedule::one_f_one_b, 8, 1, 3},
    {Schedule::interleaved, 2, 2, 2},   {Schedule::interleaved, 4, 2, 8},
    {Schedule::interleaved, 4, 3, 4},   {Schedule::interleaved, 8, 6, 32},
    {Schedule::interleaved, 16, 8, 64}, {Schedule::gpipe, 3, 1, 100},
};

std::vector<Step> of(const Case& c, std::int64_t stage) {
  return steps(c.schedule, c.pp, c.vpp, c.micro_batches, stage);
}

std::int64_t peak_in_flight(const std::vector<Step>& steps) {
  std::int64_t now = 0, peak = 0;
  for (const Step& step : steps) peak = std::max(peak, now += step.forward ? 1 : -1);
  return peak;
}

// Plays all stages against each other: a step runs once those it needs have run on its neighbours.
// The number of steps that never run.
std::int64_t stuck_steps(const Case& c) {
  using Done = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t>;  // pass, chunk, stage, n
  std::map<Done, bool> done;
  std::vector<std::vector<Step>> all;
  for (std::int64_t stage = 0; stage < c.pp; ++stage) all.push_back(of(c, stage));
  std::vector<std::size_t> next(c.pp, 0);
  std::vector<std::map<std::pair<bool, std::int64_t>, std::int64_t>> seen(c.pp);
  const auto ready = [&](const Step& step, std::int64_t stage, std::int64_t n) {
    const std::int64_t chunk = step.chunk;
    if (step.forward) {
      if (stage > 0) return done.count({true, chunk, stage - 1, n}) > 0;
      return chunk == 0 || done.count({true, chunk - 1, c.pp - 1, n}) > 0;
    }
    if (!done.count({true, chunk, stage, n})) return false;
    if (stage < c.pp - 1) return done.count({false, chunk, stage + 1, n}) > 0;
    return chunk == c.vpp - 1 || done.count({false, chunk + 1, 0, n}) > 0;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      while (next[stage] < all[stage].size()) {
        const Step& step = all[stage][next[stage]];
        std::int64_t& n = seen[stage][{step.forward, step.chunk}];
        if (!ready(step, stage, n)) break;
        done[{step.forward, step.chunk, stage, n++}] = true;
        ++next[stage];
        moved = true;
      }
    }
  }
  std::int64_t stuck = 0;
  for (std::int64_t stage = 0; stage < c.pp; ++stage) stuck += all[stage].size() - next[stage];
  return stuck;
}

std::int64_t size_of(const std::vector<Folded>& folded) {
  std::int64_t size = 0;
  for (const Folded& node : folded) size += 1 + size_of(node.body);
  return size;
}

TEST(Schedule, EachChunkRunsEachMicroBatchForwardsAndBackwardsOnce) {
  for (const Case& c : cases) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      std::map<std::pair<bool, std::int32_t>, std::int64_t> count;
      for (const Step& step : of(c, stage)) ++count[{step.forward, step.chunk}];
      EXPECT_EQ(count.size(), 2 * c.vpp);
      for (const auto& [key, n] : count) EXPECT_EQ(n, c.micro_batches);
    }
  }
}

TEST(Schedule, EveryForwardComesBeforeItsBackward) {
  for (const Case& c : cases) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      std::map<std::int32_t, std::int64_t> open;
      for (const Step& step : of(c, stage)) {
        open[step.chunk] += step.forward ? 1 : -1;
        ASSERT_GE(open[step.chunk], 0);
      }
    }
  }
}

TEST(Schedule, StagesNeverWaitForEachOtherForever) {
  for (const Case& c : cases) EXPECT_EQ(stuck_steps(c), 0) << c.pp << " " << c.vpp;
}

TEST(Schedule, MicroBatchesInFlight) {
  for (const Case& c : cases) {
    const std::int64_t total = c.micro_batches * c.vpp;
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      const std::int64_t peak = peak_in_flight(of(c, stage));
      const std::int64_t expected = c.schedule == Schedule::gpipe ? total
                                    : c.schedule == Schedule::one_f_one_b
                                        ? c.pp - stage
                                        : 2 * (c.pp - stage - 1) + (c.vpp - 1) * c.pp + 1;
      EXPECT_EQ(peak, std::min(expected, total));
    }
  }
}

TEST(Schedule, InterleavedOrderIsMegatrons) {
  std::string text;  // pp 2, vpp 2, 4 micro-batches, first stage: 4 warm-up forwards
  for (const Step& step : steps(Schedule::interleaved, 2, 2, 4, 0)) {
    text += (step.forward ? "F" : "B") + std::to_string(step.chunk) + " ";
  }
  EXPECT_EQ(text, "F0 F0 F1 F1 F0 B1 F0 B1 F1 B0 F1 B0 B1 B1 B0 B0 ");
}

TEST(Schedule, EdgesAreTheFirstForwardAndTheLastBackwardOfEachChunk) {
  const std::vector<Step> s = steps(Schedule::interleaved, 2, 2, 4, 0);
  std::vector<std::size_t> edges;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i].edge) edges.push_back(i);
  }
  EXPECT_EQ(edges, (std::vector<std::size_t>{0, 2, 13, 15}));
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
    for (Step& step : sequence) step = {draw(2) == 0, draw(kinds)};
    ASSERT_EQ(unfold(fold(sequence)), sequence);
  }
}

TEST(Fold, SizeDoesNotGrowWithMicroBatches) {
  for (const Case& c :
       {Case{Schedule::gpipe, 4, 1, 64}, Case{Schedule::one_f_one_b, 4, 1, 64},
        Case{Schedule::one_f_one_b, 16, 1, 64}, Case{Schedule::interleaved, 8, 6, 64},
        Case{Schedule::interleaved, 16, 8, 64}}) {
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      Case longer = c;
      longer.micro_batches = 4096;
      const std::int64_t size = size_of(fold(of(c, stage)));
      EXPECT_EQ(size_of(fold(of(longer, stage))), size) << c.pp << " " << c.vpp << " " << stage;
      EXPECT_LE(size, 20 * (c.vpp + 1));
    }
  }
}

}  // namespace
}  // namespace orrery

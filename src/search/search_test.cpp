#include "search/search.h"

#include <gmock/gmock.h>

namespace orrery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Catalog& catalog() {
  static const Catalog all = Catalog::load(default_data_dir());
  return all;
}

Request asking(std::map<std::string, std::string> values) {
  values.insert(
      {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"gpus", "8"}, {"global-batch", "64"}});
  return Request{.values = values, .architecture = {}, .place = "test"};
}

Found found_for(const Request& request, unsigned threads = 2) {
  const Scenario scenario = resolve(request, catalog());
  return search(scenario, space_of(request, scenario), {},
                {.keep = 5, .threads = threads, .progress = {}});
}

TEST(Search, BestComesFirstAndFits) {
  const Found found = found_for(asking({}));
  ASSERT_GE(found.best.size(), 2u);
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    EXPECT_TRUE(found.best[i].answer.feasible);
    EXPECT_EQ(found.best[i].lost.empty(), i == 0);
    if (i == 0) continue;
    EXPECT_GE(found.best[i].answer.step, found.best[i - 1].answer.step);
  }
}

TEST(Search, CountsEverythingItLookedAt) {
  const Request request = asking({});
  const Scenario scenario = resolve(request, catalog());
  std::int64_t all = 0;
  for (const Ladder& ladder : candidates(space_of(request, scenario), scenario)) {
    all += static_cast<std::int64_t>(ladder.size());
  }
  EXPECT_EQ(found_for(request).searched, all);
}

TEST(Search, WhatIsGivenStays) {
  for (const Candidate& candidate : found_for(asking({{"tp", "2"}, {"micro-batch", "2"}})).best) {
    EXPECT_EQ(candidate.scenario.strategy.tp, 2);
    EXPECT_EQ(candidate.scenario.strategy.micro_batch, 2);
  }
}

TEST(Search, WhatItChoosesIsNoAssumption) {
  const Found found = found_for(asking({}));
  for (const Assumption& assumption : found.best.front().scenario.assumptions) {
    EXPECT_NE(assumption.field, "tp");
    EXPECT_NE(assumption.field, "micro-batch");
  }
}

TEST(Search, TheSameForAnyNumberOfThreads) {
  const Request request = asking({});
  const Found one = found_for(request, 1);
  const Found three = found_for(request, 3);
  ASSERT_EQ(one.best.size(), three.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(to_json(one.best[i].scenario, one.best[i].answer),
              to_json(three.best[i].scenario, three.best[i].answer));
  }
  EXPECT_EQ(one.pruned, three.pruned);
}

TEST(Search, SaysWhatIsNearestWhereNothingFits) {
  const Found found = found_for(asking({{"model", "llama-3.1-405b"}}));
  EXPECT_TRUE(found.best.empty());
  ASSERT_TRUE(found.nearest_miss.has_value());
  EXPECT_THAT(found.nearest_miss->answer.reason, HasSubstr("GiB"));
}

TEST(Search, TheNearestNeedsTheLeastMemoryOfAll) {
  const Request request = asking({{"model", "llama-3.1-405b"}});
  const Scenario base = resolve(request, catalog());
  const Found found = found_for(request);
  ASSERT_TRUE(found.nearest_miss.has_value());
  EXPECT_EQ(found.nearest_miss->scenario.strategy.tp, 8);
  EXPECT_EQ(found.nearest_miss->scenario.strategy.recompute, Recompute::full);
  for (const Ladder& ladder : candidates(space_of(request, base), base)) {
    for (const Strategy& strategy : ladder) {
      if (!broken_rules(strategy, setting_of(base)).empty()) continue;
      Scenario scenario = base;
      scenario.strategy = strategy;
      EXPECT_LE(found.nearest_miss->answer.needed(), total(scenario_memory(scenario).footprint));
    }
  }
}

TEST(Search, ShardsWeightsWhereNothingElseFits) {
  const Request job =
      asking({{"model", "llama-3.1-405b"}, {"gpus", "512"}, {"pp", "1"}, {"framework", "hf"}});
  const Found found = found_for(job);
  ASSERT_FALSE(found.best.empty());
  EXPECT_EQ(found.best.front().scenario.strategy.zero, Zero::weights);
  Request fixed = job;
  fixed.values["zero"] = "2";
  EXPECT_TRUE(found_for(fixed).best.empty());
}

TEST(Search, TriesEveryZeroThatIsLeftOpen) {
  const auto zeros = [](std::map<std::string, std::string> values) {
    const Request request = asking(std::move(values));
    return space_of(request, resolve(request, catalog())).zero;
  };
  EXPECT_THAT(zeros({}), ElementsAre(Zero::optimizer));  // NeMo shards no weights
  EXPECT_THAT(zeros({{"framework", "hf"}}), ElementsAre(Zero::gradients, Zero::weights));
  EXPECT_THAT(zeros({{"zero", "0"}}), ElementsAre(Zero::none));
  EXPECT_THAT(zeros({{"framework", "torchtitan"}}), ElementsAre(Zero::weights));
}

// Megatron-Core counts embedding and head as layers only where each stage's layers are given.
TEST(Search, SpellsOutUnevenEnds) {
  Request request = asking({{"model", "llama-3.1-405b"}, {"gpus", "512"}, {"pp", "16"}});
  const auto spelt = [&](std::string_view framework) {
    request.values["framework"] = framework;
    const Scenario base = resolve(request, catalog());
    std::size_t most = 0;
    for (const Ladder& ladder : candidates(space_of(request, base), base)) {
      for (const Strategy& s : ladder) most = std::max(most, s.stage_layers.size());
    }
    return most;
  };
  EXPECT_EQ(spelt("megatron"), 64);  // 16 stages of 4 chunks: 126 layers in 128 places
  EXPECT_EQ(spelt("nemo"), 0);
}

TEST(Search, AGivenDataParallelismStays) {
  const Found found = found_for(asking({{"dp", "4"}}));
  ASSERT_FALSE(found.best.empty());
  for (const Candidate& candidate : found.best) EXPECT_EQ(candidate.scenario.strategy.dp, 4);
}

TEST(Search, TheLeastMemoryIsNeverMoreThanTheExactOne) {
  const Request request = asking({});
  const Scenario base = resolve(request, catalog());
  std::int64_t compared = 0;
  for (const Ladder& ladder : candidates(space_of(request, base), base)) {
    for (const Strategy& strategy : ladder) {
      if (!broken_rules(strategy, setting_of(base)).empty()) continue;
      Scenario scenario = base;
      scenario.strategy = strategy;
      EXPECT_LE(least_memory(scenario), total(scenario_memory(scenario).footprint));
      ++compared;
    }
  }
  EXPECT_GT(compared, 10);
}

// A plan is repeated by giving what it chose.
TEST(Search, DividesExpertsAndTheirPlanIsRepeated) {
  Request request = asking({{"model", "qwen3-30b-a3b"}, {"pp", "1"}, {"vpp", "1"}, {"tp", "1"}});
  const Found found = found_for(request);
  ASSERT_FALSE(found.best.empty());
  const Strategy& s = found.best.front().scenario.strategy;
  EXPECT_GT(s.ep, 1);
  EXPECT_EQ(128 % s.ep, 0);
  request.values["ep"] = std::to_string(s.ep);
  request.values["micro-batch"] = std::to_string(s.micro_batch);
  request.values["recompute"] = name_of(s.recompute);
  request.values["zero"] = std::to_string(static_cast<int>(s.zero));
  EXPECT_EQ(predict(resolve(request, catalog()), {}).step, found.best.front().answer.step);
}

TEST(Search, NamesTheLargestDifference) {
  Answer best, other;
  best.step = Seconds(10);
  other.step = Seconds(10.2);
  best.time.bubble = Seconds(1);
  other.time.bubble = Seconds(1.31);
  EXPECT_EQ(why_slower(best, other), "2.0 % slower: pipeline bubble 1.00 → 1.31 s");
  other.time.bubble = best.time.bubble;
  other.time.compute = Seconds(0.125);
  EXPECT_EQ(why_slower(best, other), "2.0 % slower: compute 0 → 125 ms");
  other.time.compute = Seconds(1.5);
  EXPECT_EQ(why_slower(best, other), "2.0 % slower: compute 0 → 1.50 s");
  EXPECT_EQ(why_slower(best, best), "as fast");
}

}  // namespace
}  // namespace orrery

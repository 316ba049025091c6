#include "twin/split.h"

#include <gmock/gmock.h>

#include <numeric>

namespace orrery {
namespace {

Scenario resolved(std::map<std::string, std::string> values) {
  static const Catalog catalog = Catalog::load(default_data_dir());
  values.insert({{"gpu", "h100-sxm"}, {"gpus", "8"}, {"global-batch", "64"}, {"vpp", "1"}});
  return resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog);
}

TEST(BetterSplit, OfTwoStagesIsTheBestOfAll) {
  // 16 layers and 128k words: the head weighs as much as several layers.
  const Scenario scenario = resolved({{"model", "llama-3.2-1b"}, {"pp", "2"}});
  const Answer now = predict(scenario);
  ASSERT_TRUE(now.feasible) << now.reason;
  Seconds best = now.step;
  for (std::int64_t first = 1; first < 16; ++first) {
    Scenario other = scenario;
    other.strategy.stage_layers = {first, 16 - first};
    const Answer answer = price_scenario(other);
    if (answer.priced && answer.feasible) best = std::min(best, answer.step);
  }
  const auto found = better_split(scenario, now);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, best);
  EXPECT_EQ(found->stage_layers[0] + found->stage_layers[1], 16);
  EXPECT_GT(found->stage_layers[0], found->stage_layers[1]);
}

TEST(BetterSplit, KeepsEveryLayerAndIsWhatThePredictionSays) {
  const Scenario scenario = resolved({{"model", "llama-3.1-8b"}, {"pp", "4"}});
  const Answer now = predict(scenario);
  ASSERT_TRUE(now.feasible) << now.reason;
  const auto found = better_split(scenario, now);
  ASSERT_TRUE(found.has_value());
  const auto& layers = found->stage_layers;
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}), 32);
  Scenario other = scenario;
  other.strategy.stage_layers = layers;
  EXPECT_EQ(price_scenario(other).step, found->step);
  EXPECT_LT(found->step, now.step);
}

TEST(BetterSplit, NoneWhereThereIsNoPipelineOrWhereItIsTheBestAlready) {
  const Scenario one = resolved({{"model", "llama-3.2-1b"}, {"pp", "1"}});
  EXPECT_FALSE(better_split(one, predict(one)));
  Scenario best = resolved({{"model", "llama-3.1-8b"}, {"pp", "4"}});
  best.strategy.stage_layers = better_split(best, predict(best))->stage_layers;
  EXPECT_FALSE(better_split(best, predict(best)));
}

}  // namespace
}  // namespace orrery

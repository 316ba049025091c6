#include "twin/autopsy.h"

#include <gmock/gmock.h>

namespace orrery {
namespace {

using testing::HasSubstr;

using Values = std::map<std::string, std::string>;

Scenario resolved(Values values) {
  static const Catalog catalog = Catalog::load(default_data_dir());
  values.insert({{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"gpus", "8"}, {"tp", "2"}});
  values.insert({{"global-batch", "64"}});
  return resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog);
}

Bytes needed(const Scenario& scenario) { return total(scenario_memory(scenario).footprint); }
Bytes capacity(const Scenario& s) { return capacity_of(s.cluster.gpu, s.framework); }

const Fix* fix_of(const Autopsy& autopsy, const std::string& flags) {
  for (const Fix& fix : autopsy.fixes) {
    if (fix.flags.find(flags) != std::string::npos) return &fix;
  }
  return nullptr;
}

TEST(Autopsy, BuffersAddUpToThePeak) {
  for (const Values& values :
       {Values{{"pp", "2"}}, Values{{"framework", "torchtitan"}, {"tp", "1"}},
        Values{{"task", "lora"}, {"tp", "1"}}, Values{{"offload", "optimizer"}}}) {
    const Scenario scenario = resolved(values);
    const Answer answer = predict(scenario);
    ASSERT_TRUE(answer.priced) << answer.reason;
    Footprint sum{};
    for (const HeldBuffer& buffer : buffers_at_peak(scenario, answer.memory.at)) {
      sum[static_cast<std::size_t>(buffer.term)] += buffer.size;
    }
    for (std::size_t term = 0; term < static_cast<std::size_t>(MemoryTerm::host); ++term) {
      EXPECT_NEAR(sum[term].value(), answer.memory.footprint[term].value(), 1024) << term;
    }
  }
}

TEST(Autopsy, FixesFreeMemoryAndThoseThatFitComeFirstFastestFirst) {
  const Scenario scenario = resolved({{"micro-batch", "8"}, {"seq-len", "8192"}});
  const Answer answer = predict(scenario);
  ASSERT_FALSE(answer.feasible);
  const Autopsy autopsy_of = autopsy(scenario, answer);
  ASSERT_GT(autopsy_of.fixes.size(), 3U);
  EXPECT_TRUE(autopsy_of.fixes.front().fits);
  for (std::size_t i = 0; i < autopsy_of.fixes.size(); ++i) {
    const Fix& fix = autopsy_of.fixes[i];
    EXPECT_LT(fix.peak, answer.needed()) << fix.flags;
    EXPECT_EQ(fix.fits, fix.peak <= answer.capacity) << fix.flags;
    EXPECT_GT(fix.step_ratio, 0);
    if (i == 0) continue;
    const Fix& before = autopsy_of.fixes[i - 1];
    EXPECT_GE(before.fits, fix.fits) << fix.flags;
    if (fix.fits) {
      EXPECT_LE(before.step_ratio, fix.step_ratio) << fix.flags;
    } else if (!before.fits) {
      EXPECT_LE(before.peak, fix.peak) << fix.flags;
    }
  }
  const Fix* half = fix_of(autopsy_of, "--recompute full:16");
  const Fix* full = &autopsy_of.fixes[0];
  for (const Fix& fix : autopsy_of.fixes) {
    if (fix.flags == "--recompute full") full = &fix;
  }
  ASSERT_NE(half, nullptr);
  EXPECT_LT(full->peak, half->peak);
  EXPECT_GT(full->step_ratio, half->step_ratio);
}

// 16 bytes a parameter of 6.74 billion are 100.4 GiB: no batch is small enough. The ways out are
// those that people found (tatsu-lab/stanford_alpaca#221).
TEST(Autopsy, FullFineTuningThatNeverFitsHasWaysOut) {
  const Scenario scenario = resolved({{"model", "llama-7b"},
                                      {"gpu", "a100-sxm-80gb"},
                                      {"gpus", "1"},
                                      {"tp", "1"},
                                      {"task", "sft"},
                                      {"framework", "hf"},
                                      {"seq-len", "512"},
                                      {"recompute", "full"},
                                      {"global-batch", "8"}});
  const Answer answer = predict(scenario);
  EXPECT_FALSE(answer.feasible);
  EXPECT_EQ(answer.fill(), Fill::red);
  const Footprint& peak = answer.memory.footprint;
  EXPECT_NEAR((peak[0] + peak[1] + peak[2]).value() / (1 << 30), 100.4, 0.2);
  const Autopsy ways = autopsy(scenario, answer);
  for (const char* flags : {"--optimizer adam8bit", "--task lora", "--task qlora",
                            "--offload optimizer", "--gpus 2 --dp 2 --zero 3"}) {
    const Fix* fix = fix_of(ways, flags);
    ASSERT_NE(fix, nullptr) << flags;
    EXPECT_TRUE(fix->fits) << flags << " " << fix->peak.value() / (1 << 30);
    EXPECT_THAT(answer.reason, HasSubstr(flags));
  }
  EXPECT_LT(fix_of(ways, "--task qlora")->peak, fix_of(ways, "--task lora")->peak);
  EXPECT_EQ(ways.longest_sequence, std::nullopt);
  EXPECT_EQ(ways.largest_micro_batch, std::nullopt);
}

TEST(Autopsy, TheLongestSequenceFitsAndTheNextDoesNot) {
  for (const Values& values :
       {Values{{"pp", "2"}}, Values{{"recompute", "full"}},
        Values{{"schedule", "gpipe"}, {"pp", "2"}, {"framework", "torchtitan"}}}) {
    Scenario scenario = resolved(values);
    const std::optional<std::int64_t> longest = longest_sequence(scenario);
    ASSERT_TRUE(longest.has_value());
    scenario.strategy.seq_len = *longest;
    EXPECT_LE(needed(scenario), capacity(scenario)) << *longest;
    scenario.strategy.seq_len += sequence_step(scenario.strategy);
    EXPECT_GT(needed(scenario), capacity(scenario)) << *longest;
  }
}

TEST(Autopsy, LearnedPositionsEndTheLongestSequence) {
  EXPECT_EQ(longest_sequence(resolved({{"model", "gpt2"}, {"seq-len", "512"}, {"tp", "1"}})), 1024);
}

TEST(Autopsy, TheLargestMicroBatchFitsAndTheNextDoesNot) {
  Scenario scenario = resolved({{"seq-len", "8192"}});
  const std::optional<std::int64_t> largest = largest_micro_batch(scenario);
  ASSERT_TRUE(largest.has_value());
  scenario.strategy.micro_batch = *largest;
  EXPECT_LE(needed(scenario), capacity(scenario)) << *largest;
  scenario.strategy.micro_batch *= 2;
  EXPECT_GT(needed(scenario), capacity(scenario)) << *largest;
}

}  // namespace
}  // namespace orrery

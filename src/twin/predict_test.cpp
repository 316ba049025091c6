#include <gmock/gmock.h>

#include "core/error.h"
#include "twin/twin.h"

namespace orrery {
namespace {

using testing::HasSubstr;

using Values = std::map<std::string, std::string>;

Scenario resolved(Values values) {
  static const Catalog catalog = Catalog::load(default_data_dir());
  values.insert({{"model", "llama-3.1-8b"},
                 {"gpu", "h100-sxm"},
                 {"gpus", "8"},
                 {"tp", "2"},
                 {"global-batch", "64"}});
  return resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog);
}

TEST(Predict, PartsOfTheStepMakeTheStep) {
  const Answer answer = predict(resolved({{"pp", "2"}}));
  ASSERT_TRUE(answer.feasible) << answer.reason;
  const Breakdown& t = answer.time;
  EXPECT_NEAR((t.compute + t.exposed_comm + t.bubble + t.optimizer + t.overhead).value(),
              answer.step.value(), 1e-9 * answer.step.value());
  EXPECT_GT(answer.mfu, 0.1);
  EXPECT_LT(answer.mfu, 1.0);
  EXPECT_GE(answer.hfu, answer.mfu);
  EXPECT_LE(answer.band.low, answer.step);
  EXPECT_GE(answer.band.high, answer.step);
}

TEST(Predict, RecomputedWorkCountsAsHardwareOnly) {
  const Answer plain = predict(resolved({}));
  const Answer full = predict(resolved({{"recompute", "full"}}));
  EXPECT_NEAR(plain.hfu, plain.mfu, 1e-9);
  EXPECT_GT(full.hfu, 1.2 * full.mfu);
  EXPECT_LT(full.needed(), plain.needed());
  EXPECT_GT(full.step, plain.step);
}

// An update changes the adapters alone, so sharding its state moves none of the 16 GB of frozen
// weights, which a slow network would show.
TEST(Predict, FrozenWeightsDoNotTravelWithShardedOptimizerState) {
  const Values tuning = {{"gpus", "32"}, {"task", "lora"}, {"fabric", "hdr200"}};
  const auto step = [&](const char* zero) {
    Values values = tuning;
    values["zero"] = zero;
    return predict(resolved(values)).step.value();
  };
  EXPECT_NEAR(step("1") / step("0"), 1, 0.02);
}

// fsdp_qlora trains Llama 2 70B on two cards of 24 GB with its 4-bit shards in host memory, and not
// without (AnswerDotAI/fsdp_qlora, benchmarks_03_2024.md).
TEST(Predict, FourBitShardsMayLieInHostMemory) {
  const Values tuning = {{"model", "llama-2-70b"},
                         {"gpu", "rtx-3090"},
                         {"gpus", "2"},
                         {"tp", "1"},
                         {"global-batch", "4"},
                         {"micro-batch", "2"},
                         {"seq-len", "2048"},
                         {"framework", "fsdp-qlora"},
                         {"task", "qlora"},
                         {"zero", "3"}};
  Values offloaded = tuning;
  offloaded["offload"] = "parameters";
  EXPECT_FALSE(predict(resolved(tuning)).feasible);
  const Answer answer = predict(resolved(offloaded));
  EXPECT_TRUE(answer.feasible) << answer.reason;
}

TEST(Predict, ABrokenRuleIsAnAnswer) {
  const Answer answer = predict(resolved({{"tp", "3"}, {"dp", "2"}}));
  EXPECT_FALSE(answer.feasible);
  EXPECT_FALSE(answer.priced);
  EXPECT_THAT(answer.reason, HasSubstr("3"));
}

TEST(Predict, TooLittleMemoryIsAnAnswerWithHelp) {
  const Answer answer = predict(resolved({{"model", "llama-3.1-70b"}, {"tp", "1"}, {"dp", "8"}}));
  EXPECT_FALSE(answer.feasible);
  EXPECT_TRUE(answer.priced);
  EXPECT_THAT(answer.reason, HasSubstr("GiB of 78.1 GiB"));
  EXPECT_THAT(answer.reason, HasSubstr("largest terms"));
  EXPECT_THAT(answer.reason, HasSubstr("no single change is enough: "));
  EXPECT_THAT(answer.reason, HasSubstr("beside it fits: "));
}

TEST(Predict, MoreTokensTakeLongerAndCostMore) {
  const Scenario scenario = resolved({{"tokens", "100B"}, {"price", "2"}});
  const Answer answer = predict(scenario);
  ASSERT_TRUE(answer.run_cost.has_value());
  const double hours = answer.run_time->value() / 3600;
  EXPECT_NEAR(answer.run_cost->value(), hours * 8 * 2, 1e-6 * answer.run_cost->value());
  EXPECT_NEAR(answer.cost_per_million_tokens->value() * 1e5, answer.run_cost->value(),
              1e-6 * answer.run_cost->value());
}

TEST(Predict, ALowerPowerCapIsNeverFaster) {
  const Answer free = predict(resolved({}));
  const Answer capped = predict(resolved({{"power-cap", "400"}}));
  EXPECT_GE(capped.step, free.step);
  EXPECT_LE(capped.gpu_power, Watts(400));
}

TEST(Predict, PaddingIsComputedAndNotTrained) {
  const Answer full = predict(resolved({}));
  const Answer padded = predict(resolved({{"padding", "25%"}}));
  EXPECT_EQ(padded.step, full.step);
  EXPECT_NEAR(padded.tokens_per_s, 0.75 * full.tokens_per_s, 1e-6 * full.tokens_per_s);
  EXPECT_NEAR(padded.mfu, 0.75 * full.mfu, 1e-9);
}

TEST(Predict, ARunTakesLongerWhileItsBatchGrows) {
  const double step = predict(resolved({{"global-batch", "64"}})).step.value();
  const double half_step = predict(resolved({{"global-batch", "32"}})).step.value();
  const Answer answer =
      predict(resolved({{"global-batch", "64"}, {"tokens", "100B"}, {"batch-ramp", "32:32:10B"}}));
  const double expected = 10e9 / (32 * 4096) * half_step + 90e9 / (64 * 4096) * step;
  EXPECT_NEAR(answer.run_time->value(), expected, 1e-9 * expected);
  const Answer finer =
      predict(resolved({{"global-batch", "64"}, {"tokens", "100B"}, {"batch-ramp", "32:8:10B"}}));
  EXPECT_LT(*finer.run_time, *answer.run_time);
  EXPECT_GT(finer.run_time->value(), 100e9 / (64 * 4096) * step);
}

// Frozen weights have no weight gradient: 4 FLOPs a parameter and token in place of 6, and a few
// for the adapters.
TEST(Predict, AdaptersNeedTwoThirdsOfTheFlops) {
  const auto flop_per_token = [](const Answer& answer) {
    return answer.model_flops_per_gpu / answer.tokens_per_s_per_gpu;
  };
  const Answer all = predict(resolved({{"seq-len", "512"}}));
  const Answer lora = predict(resolved({{"seq-len", "512"}, {"task", "lora"}}));
  EXPECT_GT(flop_per_token(lora) / flop_per_token(all), 0.66);
  EXPECT_LT(flop_per_token(lora) / flop_per_token(all), 0.70);
  EXPECT_LT(lora.step, all.step);
}

Bytes held(const Answer& answer, MemoryTerm term) {
  return answer.memory.footprint[static_cast<std::size_t>(term)];
}

TEST(Predict, MomentsOfEightBitsAreAQuarter) {
  const auto state = [](const char* optimizer) {
    const Scenario s = resolved({{"framework", "ddp"}, {"tp", "1"}, {"optimizer", optimizer}});
    return held(price_scenario(s), MemoryTerm::optimizer).value() / 8030261248.0;
  };
  EXPECT_NEAR(state("adam"), 12, 0.01);
  EXPECT_NEAR(state("adam8bit"), 4 + 2.03, 0.01);
}

TEST(Predict, AnOffloadedOptimizerLiesOnTheHost) {
  const Values values = {{"framework", "deepspeed"}, {"tp", "1"}, {"zero", "3"}};
  const Answer here = predict(resolved(values));
  Values away_values = values;
  away_values["offload"] = "optimizer";
  const Answer away = predict(resolved(away_values));
  EXPECT_EQ(here.host, Bytes());
  EXPECT_EQ(held(away, MemoryTerm::optimizer), Bytes());
  EXPECT_LT(away.needed(), here.needed());
  // One node holds it all: master copy and two moments, and gradients on the way, of 8.03 billion.
  EXPECT_GE(away.host.value() / 8030261248.0, 12);
  EXPECT_LE(away.host.value() / 8030261248.0, 18);
}

TEST(Predict, APipelineThatIsFullHoldsNoMore) {
  for (const auto& [framework, schedule] : {std::pair("megatron", "1f1b"),
                                            {"megatron", "interleaved"},
                                            {"torchtitan", "zb-v"},
                                            {"internevo", "zb-h1"},
                                            {"torchtitan", "dualpipe"}}) {
    const Scenario s = resolved(
        {{"pp", "2"}, {"schedule", schedule}, {"framework", framework}, {"global-batch", "256"}});
    const Answer answer = price_scenario(s);
    ASSERT_TRUE(answer.priced) << answer.reason;
    EXPECT_NEAR(total(scenario_memory(s).footprint) / answer.needed(), 1, 1e-9) << schedule;
  }
}

// deepspeed/runtime/zero/stage3.py: 18 bytes of each of 8.03 billion over 8 GPUs, and 4 of the
// largest matrix, the embedding.
TEST(Predict, DeepspeedsEstimateIsOfStatesAlone) {
  const Values values = {{"framework", "deepspeed"}, {"tp", "1"}, {"zero", "3"}};
  const Scenario scenario = resolved(values);
  const Json memory = to_json(scenario, predict(scenario))["memory"];
  const double bytes = 18 * 8030261248.0 / 8 + 4 * 128256.0 * 4096;
  EXPECT_NEAR(memory["deepspeed_estimate"]["gpu_gib"].as_double(), bytes / (1 << 30), 1e-9);
  EXPECT_LT(memory["deepspeed_estimate"]["gpu_gib"].as_double(), memory["peak_gib"].as_double());
  const Scenario other = resolved({});
  EXPECT_FALSE(to_json(other, predict(other))["memory"].contains("deepspeed_estimate"));
}

TEST(Predict, TheBandSaysHowFullTheCardIs) {
  Answer answer;
  answer.capacity = Bytes(100);
  const auto fill = [&](double bytes) {
    answer.memory.footprint = {};
    answer.memory.footprint[0] = Bytes(bytes);
    return answer.fill();
  };
  EXPECT_EQ(fill(91.9), Fill::green);
  EXPECT_EQ(fill(92), Fill::yellow);
  EXPECT_EQ(fill(100), Fill::yellow);
  EXPECT_EQ(fill(100.1), Fill::red);
}

TEST(Predict, JsonHasTheKeysThatOthersRelyOn) {
  const Scenario scenario = resolved({{"tokens", "1T"}});
  const Json json = to_json(scenario, predict(scenario));
  for (const char* key : {"schema_version",
                          "warnings",
                          "assumptions",
                          "evidence",
                          "error_band",
                          "feasible",
                          "reason",
                          "step_time_s",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "model_tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "memory",
                          "time",
                          "power",
                          "energy",
                          "cost",
                          "parameters",
                          "job",
                          "strategy",
                          "flop_convention",
                          "mfu_peak"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key : {"group", "n", "median_abs_error", "nearest", "extrapolated"}) {
    EXPECT_TRUE(json["evidence"].contains(key)) << key;
  }
  for (const char* key : {"compute", "exposed_comm", "bubble", "optimizer", "overhead"}) {
    EXPECT_TRUE(json["time"]["breakdown"].contains(key)) << key;
  }
  for (const char* key :
       {"peak_gib", "allocated_gib", "capacity_gib", "band", "host_gib", "padded_vocab"}) {
    EXPECT_TRUE(json["memory"].contains(key)) << key;
  }
  EXPECT_FALSE(json["memory"].contains("fixes"));
  EXPECT_TRUE(json["power"].contains("avg_gpu_w"));
  EXPECT_TRUE(json["energy"].contains("kwh_per_step"));
  EXPECT_EQ(json["parameters"]["total"].as_integer(), 8030261248);
  EXPECT_EQ(json["strategy"]["tp"].as_integer(), 2);
  double sum = 0;
  for (const auto& [term, size] : json["memory"]["breakdown"].members()) sum += size.as_double();
  EXPECT_NEAR(sum, json["memory"]["peak_gib"].as_double(), 1e-9);
}

TEST(Predict, JsonOfABrokenRuleHasNullsForNumbers) {
  const Scenario scenario = resolved({{"tp", "3"}, {"dp", "2"}});
  const Json json = to_json(scenario, predict(scenario));
  EXPECT_FALSE(json["feasible"].as_bool());
  EXPECT_TRUE(json["step_time_s"].is_null());
  EXPECT_TRUE(json["reason"].is_string());
}

// Image tokens may be as many as those of the sequence.
TEST(Predict, AnImageMayFillTheSequence) {
  for (const char* model : {"gemma-3-27b", "llava-1.5-7b"}) {
    const std::string tokens = model == std::string("llava-1.5-7b") ? "576" : "256";
    const Answer answer = predict(resolved({{"model", model}, {"seq-len", tokens}, {"tp", "8"}}));
    EXPECT_TRUE(answer.feasible) << answer.reason;
  }
}

// What the layers keep lies in the node's memory; the two layers on their way stay behind.
TEST(Predict, OffloadedActivationsLieOnTheHost) {
  const auto answer = [](const char* offload) {
    return predict(resolved({{"framework", "fsdp"},
                             {"tp", "1"},
                             {"micro-batch", "2"},
                             {"recompute", "none"},
                             {"offload", offload}}));
  };
  const Answer here = answer("none"), away = answer("activations");
  const auto term = [](const Answer& of, MemoryTerm which) {
    return of.memory.footprint[static_cast<std::size_t>(which)].value();
  };
  const double kept = term(here, MemoryTerm::activations) - term(away, MemoryTerm::activations);
  EXPECT_GT(kept, 0.9 * term(here, MemoryTerm::activations));
  EXPECT_NEAR(term(away, MemoryTerm::host) / kept, 1, 0.05);
  EXPECT_LT(away.needed(), here.needed());
  EXPECT_GE(away.step, here.step);
}

// A tower without a backward pass keeps nothing, so that micro-batches do not pile up.
TEST(Predict, AFrozenTowerKeepsNothing) {
  const auto peak = [](const char* recompute, const char* global_batch, bool freeze) {
    std::map<std::string, std::string> values = {{"model", "qwen2-vl-7b"},
                                                 {"framework", "torchtitan"},
                                                 {"tp", "1"},
                                                 {"recompute", recompute},
                                                 {"global-batch", global_batch}};
    if (freeze) values["freeze"] = "vision";
    return predict(resolved(values)).needed();
  };
  for (const char* recompute : {"none", "operators", "full"}) {
    EXPECT_EQ(peak(recompute, "8", true), peak(recompute, "64", true)) << recompute;
    EXPECT_LT(peak(recompute, "64", true), peak(recompute, "64", false)) << recompute;
  }
}

}  // namespace
}  // namespace orrery

#include "twin/launch.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "twin/twin.h"

namespace orrery {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Values = std::map<std::string, std::string>;

Scenario resolved(Values values) {
  static const Catalog catalog = Catalog::load(default_data_dir());
  values.insert({{"model", "gpt2"},
                 {"gpu", "h100-sxm"},
                 {"gpus", "1"},
                 {"seq-len", "1024"},
                 {"global-batch", "16"},
                 {"recompute", "none"},
                 {"framework", "hf"}});
  return resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog);
}

Seconds sum(const Breakdown& t) {
  return t.compute + t.exposed_comm + t.bubble + t.optimizer + t.overhead + t.host;
}

// 124 M parameters in micro-batches of 1024 tokens: kernels of some 10 us, 55 us apart.
TEST(Launch, SmallModelsWaitForTheHost) {
  const Answer answer = predict(resolved({}));
  ASSERT_TRUE(answer.feasible) << answer.reason;
  EXPECT_EQ(answer.bound, "host");
  EXPECT_GT(answer.time.host, 0.3 * answer.step);
  EXPECT_NEAR(sum(answer.time).value(), answer.step.value(), 1e-9 * answer.step.value());
  EXPECT_THAT(answer.warnings, Contains(HasSubstr("of the step waits for launches")));
}

TEST(Launch, LargerMicroBatchesHideLaunches) {
  const Answer one = predict(resolved({}));
  const Answer sixteen = predict(resolved({{"micro-batch", "16"}}));
  EXPECT_LT(sixteen.time.host, 0.2 * one.time.host);
  EXPECT_LT(sixteen.step, one.step);
}

TEST(Launch, GraphsAndCompilersAreNeverSlower) {
  for (const char* micro_batch : {"1", "4", "16"}) {
    const auto step = [&](const char* launch) {
      return predict(resolved({{"launch", launch}, {"micro-batch", micro_batch}})).step;
    };
    EXPECT_LE(step("compiled"), step("eager")) << micro_batch;
    EXPECT_LE(step("graph"), step("eager")) << micro_batch;
  }
}

TEST(Launch, GraphsHideLaunchesAndLeaveTheKernels) {
  const Answer eager = predict(resolved({})), graph = predict(resolved({{"launch", "graph"}}));
  EXPECT_EQ(graph.time.compute, eager.time.compute);
  EXPECT_EQ(graph.time.host, Seconds(0));
  EXPECT_NE(graph.bound, "host");
  EXPECT_THAT(graph.warnings, Not(Contains(HasSubstr("waits for launches"))));
}

// HF moves twice what its operators' operands are; a compiler fuses that away.
TEST(Launch, CompiledKernelsMoveTheirOperandsOnce) {
  const Scenario eager = resolved({}), compiled = resolved({{"launch", "compiled"}});
  EXPECT_GT(eager.framework.traffic.value(), 1);
  EXPECT_EQ(compiled.framework.traffic.value(), 1);
  EXPECT_LT(predict(compiled).time.compute, predict(eager).time.compute);
}

TEST(Launch, WhatTheFrameworkDoesIsTheDefault) {
  for (const char* framework : {"nemo", "hf", "deepspeed"}) {
    const Scenario usual = resolved({{"framework", framework}});
    const Scenario asked = resolved({{"framework", framework}, {"launch", "eager"}});
    EXPECT_EQ(usual.launch, Launch::eager);
    EXPECT_EQ(predict(usual).step, predict(asked).step) << framework;
  }
  EXPECT_EQ(resolved({{"framework", "jax"}}).launch, Launch::compiled);
}

TEST(Launch, LargeJobsAreBoundByTheirKernels) {
  const Answer answer = predict(resolved({{"framework", "nemo"},
                                          {"model", "llama-3.1-8b"},
                                          {"gpus", "8"},
                                          {"tp", "2"},
                                          {"seq-len", "4096"}}));
  EXPECT_EQ(answer.bound, "compute");
  EXPECT_EQ(answer.time.host, Seconds(0));
}

TEST(Launch, RefusesWhatTheFrameworkCannot) {
  try {
    resolved({{"framework", "jax"}, {"launch", "eager"}});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no way in which JAX launches kernels"));
  }
}

TEST(Launch, SaysWhatGraphsLeaveOut) {
  const Scenario dense = resolved({{"launch", "graph"}, {"framework", "nemo"}});
  EXPECT_THAT(dense.warnings, Contains(HasSubstr("static buffers")));
  EXPECT_THAT(dense.warnings, Not(Contains(HasSubstr("static shapes"))));
  const Values experts = {{"model", "mixtral-8x7b"},
                          {"gpus", "64"},
                          {"ep", "8"},
                          {"framework", "nemo"},
                          {"launch", "graph"}};
  EXPECT_THAT(resolved(experts).warnings, Contains(HasSubstr("static shapes")));
  Values fixed = experts;
  fixed["capacity"] = "1.25";
  EXPECT_THAT(resolved(fixed).warnings, Not(Contains(HasSubstr("static shapes"))));
  EXPECT_THAT(resolved({{"launch", "graph"}}).warnings, Contains(HasSubstr("no source was found")));
}

TEST(BoundOf, IsTheLongestPartUnlessTheHostIsNoticed) {
  Breakdown time{};
  time.compute = Seconds(60);
  time.exposed_comm = Seconds(39);
  time.host = Seconds(1);
  EXPECT_EQ(bound_of(time), "compute");
  time.exposed_comm = Seconds(61);
  EXPECT_EQ(bound_of(time), "communication");
  time.host = Seconds(7);
  EXPECT_EQ(bound_of(time), "host");
}

}  // namespace
}  // namespace orrery

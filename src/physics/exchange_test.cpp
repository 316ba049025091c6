// All-reduces of inference engines and DeepEP.
#include <gmock/gmock.h>

#include "physics/custom_all_reduce.h"
#include "physics/expert_exchange.h"

namespace orrery {
namespace {

using namespace literals;

Device plain() {
  Device device;
  device.sms = 132;
  device.memory = 3.35_TBps;
  device.limit = Watts(700);
  return device;
}

CustomAllReduceShape reduce(Engine engine, std::int64_t ranks, Bytes size) {
  return {.engine = engine, .ranks = ranks, .size = size, .link = 450_GBps};
}
// What the table's rows for H100 come to.
CustomAllReduceParameters usual() {
  return {.host = 0.1_us,
          .start = 4.2_us,
          .peer = 0.085_us,
          .one_shot_rate = 0.59,
          .two_shots = 4.2_us,
          .two_shot_rate = 0.75,
          .symmetric_start = 14.8_us,
          .symmetric_rate = 0.48};
}

TEST(CustomAllReduce, TakesTheWayOfItsEngine) {
  const auto way = [](Engine engine, std::int64_t ranks, Bytes size) {
    return all_reduce_way(reduce(engine, ranks, size));
  };
  EXPECT_EQ(way(Engine::vllm, 2, 4_MiB), AllReduceWay::one_shot);
  EXPECT_EQ(way(Engine::vllm, 8, 128_KiB), AllReduceWay::one_shot);
  EXPECT_EQ(way(Engine::vllm, 8, 256_KiB), AllReduceWay::two_shot);
  EXPECT_EQ(way(Engine::vllm, 8, 8_MiB), AllReduceWay::symmetric);
  EXPECT_EQ(way(Engine::vllm, 8, 128_MiB), AllReduceWay::nccl);
  EXPECT_EQ(way(Engine::vllm, 16, 1_KiB), AllReduceWay::nccl);
  EXPECT_EQ(way(Engine::sglang, 8, 8_MiB), AllReduceWay::two_shot);
  EXPECT_EQ(way(Engine::tensorrt_llm, 8, 1_MiB), AllReduceWay::nccl);
  CustomAllReduceShape ampere = reduce(Engine::vllm, 8, 8_MiB);
  ampere.architecture = GpuArchitecture::ampere;
  EXPECT_EQ(all_reduce_way(ampere), AllReduceWay::nccl);
}

// vLLM 0.24 in a CUDA graph on eight H100 (ai-dynamo/aiconfigurator@095f58a).
TEST(CustomAllReduce, MeetsVllmsTimes) {
  const auto us = [](std::int64_t ranks, Bytes size) {
    return custom_all_reduce_time(reduce(Engine::vllm, ranks, size), usual(), plain())
               .time.value() *
           1e6;
  };
  EXPECT_NEAR(us(2, 4_MiB), 20.2, 1);
  EXPECT_NEAR(us(8, 1_KiB), 4.6, 0.4);
  EXPECT_NEAR(us(8, 128_KiB), 7.9, 0.6);
  EXPECT_NEAR(us(8, 4_MiB), 30.8, 2);
  EXPECT_NEAR(us(8, 64_MiB), 344, 20);
}

TEST(CustomAllReduce, MoreBytesAndCopiesTakeLonger) {
  for (double size = 1 << 10; size < (64 << 20); size *= 2) {
    for (const std::int64_t ranks : {2, 4, 8}) {
      CustomAllReduceShape shape = reduce(Engine::sglang, ranks, Bytes(size));
      if (all_reduce_way(shape) == AllReduceWay::nccl) continue;
      const Seconds now = custom_all_reduce_time(shape, usual(), plain()).time;
      shape.size = Bytes(size * 1.01);
      if (all_reduce_way(shape) != AllReduceWay::nccl) {
        EXPECT_GT(custom_all_reduce_time(shape, usual(), plain()).time, now);
      }
      shape.size = Bytes(size);
      shape.copied = true;
      EXPECT_GT(custom_all_reduce_time(shape, usual(), plain()).time, now);
    }
  }
}

TEST(CustomAllReduce, ACallWaitsForItsHost) {
  CustomAllReduceParameters eager = usual();
  eager.host = 20_us;
  EXPECT_EQ(custom_all_reduce_time(reduce(Engine::vllm, 4, 1_KiB), eager, plain()).time, 20_us);
}

// --- DeepEP -------------------------------------------------------------------------------------

ExpertExchangeParameters deep_ep() {
  return {.start = 9_us,
          .expert = Seconds(15e-9),
          .token = 0.5_us,
          .copy = 0.015_us,
          .sm_rate = 25_GBps,
          .link_rate = 0.65};
}
ExpertExchangeShape exchange() {
  return {.tokens = 128,
          .hidden = 7168,
          .top_k = 8,
          .experts = 256,
          .ranks = 8,
          .link = 200_GBps,
          .nic = 50_GBps};
}
double us(const ExpertExchangeShape& shape) {
  return expert_exchange_time(shape, deep_ep(), plain()).time.value() * 1e6;
}

// deepseek-ai/DeepEP@dd758ca, docs/legacy: low-latency dispatch and combine on H800.
TEST(ExpertExchange, MeetsDeepEpsOwnTable) {
  ExpertExchangeShape shape = exchange();
  shape.low_latency = true;
  const auto at = [&](std::int64_t ranks, bool combine) {
    shape.ranks = ranks;
    shape.nodes = ranks / 8;
    shape.combine = combine;
    return us(shape);
  };
  EXPECT_NEAR(at(8, false) / 77, 1, 0.15);
  EXPECT_NEAR(at(64, false) / 173, 1, 0.1);
  EXPECT_NEAR(at(256, false) / 194, 1, 0.1);
  EXPECT_NEAR(at(64, true) / 314, 1, 0.1);
  EXPECT_NEAR(at(256, true) / 360, 1, 0.1);
}

TEST(ExpertExchange, MoreSmsHelpAndMoreTokensCost) {
  ExpertExchangeShape shape = exchange();
  shape.tokens = 4096;
  double before = 1e9;
  for (const std::int64_t sms : {4, 8, 16, 24}) {
    shape.sms = sms;
    EXPECT_LT(us(shape), before);
    before = us(shape);
  }
  for (shape.tokens = 1; shape.tokens < (1 << 30); shape.tokens *= 4) {
    const double now = us(shape);
    ExpertExchangeShape more = shape;
    more.tokens += 1;
    EXPECT_GT(us(more), now);
    more = shape;
    more.combine = true;
    EXPECT_GT(us(more), now);
  }
}

// A token goes once to a rank, so eight experts on eight ranks are fewer than eight messages.
TEST(ExpertExchange, TokensTravelOnceToARank) {
  ExpertExchangeShape shape = exchange();
  shape.tokens = 1 << 20;
  const double eight = us(shape);
  shape.top_k = 1;
  EXPECT_LT(eight / us(shape), 5.3);
  EXPECT_GT(eight / us(shape), 2);
}

}  // namespace
}  // namespace orrery

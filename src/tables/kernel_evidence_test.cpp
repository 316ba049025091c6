#include "tables/kernel_evidence.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;

KernelSet named_set() {
  KernelSet set;
  set.op = "gemm";
  set.variant = "bf16";
  set.library = "vllm";
  set.gpu = "h100-sxm";
  return set;
}
const KernelSet set = named_set();

KernelEvidence group() {
  KernelEvidence one;
  one.op = "gemm";
  one.variant = "bf16";
  one.library = "vllm";
  one.gpu = "h100-sxm";
  one.source = "a table";
  one.n = 1000;
  one.median = 0.04;
  one.bands = {KernelBand{100, 0.9, 1.2}, KernelBand{100, 0.8, 1.1}, KernelBand{},
               KernelBand{1000, 0.95, 1.05}};
  one.landmarks = {{7, "m=1", Flop(1e9), Bytes(1e6), 10.0_us},
                   {9, "m=64", Flop(64e9), Bytes(2e6), 50.0_us}};
  return one;
}

KernelTime time_of(Seconds time, double flop, double bytes) {
  KernelTime out;
  out.time = time;
  out.flop = Flop(flop);
  out.bytes = Bytes(bytes);
  return out;
}

TEST(KernelEvidence, SurvivesAFile) {
  const std::vector<KernelEvidence> table = {group()};
  const auto read = kernel_evidence_from_json(to_json(std::span(table)), "e.json");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name(), "gemm bf16 vllm h100-sxm");
  EXPECT_EQ(read[0].bands[1].high, 1.1);
  EXPECT_NEAR(read[0].landmarks[1].measured.value(), 50e-6, 1e-15);
  EXPECT_THROW(kernel_evidence_from_json(parse_json("{\"schema_version\": 2}", "x"), "x"),
               InputError);
}

TEST(KernelEvidence, AnAnswerNamesItsGroupItsErrorAndTheNearestRow) {
  const std::vector<KernelEvidence> table = {group()};
  const KernelRecord record = record_of(table, {&set, true, true}, time_of(10.0_us, 40e9, 2e6));
  EXPECT_EQ(record.group, "gemm bf16 vllm h100-sxm");
  EXPECT_EQ(record.n, 1000);
  EXPECT_EQ(record.median_abs_error, 0.04);
  EXPECT_THAT(record.nearest, testing::StartsWith("m=64: 50"));
  EXPECT_FALSE(record.extrapolated);
  // 100 rows of 0.9 and five of 0.7.
  EXPECT_NEAR(record.low.value(), 10e-6 * (100 * 0.9 + 5 * 0.7) / 105, 1e-12);
  EXPECT_NEAR(record.high.value(), 10e-6 * (100 * 1.2 + 5 * 1.3) / 105, 1e-12);
}

TEST(KernelEvidence, WhatLiesFarFromEveryRowOrOnAnotherGpuIsExtrapolated) {
  const std::vector<KernelEvidence> table = {group()};
  const KernelRecord near = record_of(table, {&set, true, true}, time_of(2.0_ms, 1e9, 1e6));
  const KernelRecord far = record_of(table, {&set, true, true}, time_of(2.0_ms, 1e13, 1e9));
  const KernelRecord other = record_of(table, {&set, false, true}, time_of(2.0_ms, 1e9, 1e6));
  EXPECT_FALSE(near.extrapolated);
  for (const KernelRecord& record : {far, other}) {
    EXPECT_TRUE(record.extrapolated);
    EXPECT_NEAR((record.high / near.high - 1) / (near.high / Seconds(2e-3) - 1), 1, 0.1);
  }
}

TEST(KernelEvidence, WithoutARecordTheBandIsWideAndSaysSo) {
  const KernelRecord record = record_of({}, {&set, true, true}, time_of(10.0_us, 1, 1));
  EXPECT_TRUE(record.extrapolated);
  EXPECT_EQ(record.n, 0);
  EXPECT_EQ(record.nearest, "");
  EXPECT_NEAR(record.low.value(), 4e-6, 1e-12);
  EXPECT_NEAR(record.high.value(), 16e-6, 1e-12);
}

}  // namespace
}  // namespace orrery

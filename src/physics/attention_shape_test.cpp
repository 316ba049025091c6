#include "physics/attention_shape.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace orrery {
namespace {

using testing::HasSubstr;

// Of one head of one sequence, counted token by token.
double counted_pairs(std::int64_t q_len, std::int64_t kv_len, std::int64_t window, bool causal) {
  const std::int64_t most = window > 0 ? window : kv_len;
  double pairs = 0;
  for (std::int64_t i = 0; i < q_len; ++i) {
    const std::int64_t seen = causal ? kv_len - q_len + i + 1 : kv_len;
    pairs += static_cast<double>(std::min(seen, most));
  }
  return pairs;
}

RC_GTEST_PROP(AttentionShape, CountsThePairsThatAreSeen, ()) {
  AttentionShape shape;
  shape.q_len = *rc::gen::inRange<std::int64_t>(1, 60);
  shape.kv_len = shape.q_len + *rc::gen::inRange<std::int64_t>(0, 60);
  shape.window = *rc::gen::inRange<std::int64_t>(0, 130);
  shape.causal = *rc::gen::arbitrary<bool>();
  RC_ASSERT(AttentionExtent(shape).pairs ==
            counted_pairs(shape.q_len, shape.kv_len, shape.window, shape.causal));
}

// FlashAttention-3 paper: batch 16, 1k tokens, 32 heads of 64, causal counts half.
TEST(AttentionShape, CountsWorkAsPapersDo) {
  AttentionShape shape;
  shape.batch = 16, shape.heads = shape.kv_heads = 32, shape.head_dim = 64;
  shape.q_len = shape.kv_len = 1024;
  shape.causal = false;
  const double all = 4.0 * 16 * 32 * 64 * 1024 * 1024;
  EXPECT_DOUBLE_EQ(attention_flop(shape).value(), all);
  shape.backward = true;
  EXPECT_DOUBLE_EQ(attention_flop(shape).value(), 2.5 * all);
  shape.backward = false, shape.causal = true;
  EXPECT_NEAR(attention_flop(shape).value(), all / 2, 0.001 * all);
  shape.documents = 4;  // of 256 tokens
  EXPECT_NEAR(attention_flop(shape).value(), all / 8, 0.001 * all);
}

TEST(AttentionShape, CountsEachOperandOnce) {
  AttentionShape shape;
  shape.batch = 2, shape.heads = 8, shape.kv_heads = 2, shape.head_dim = 128;
  shape.kv_len = 1000;
  shape.cache = Precision::fp8;
  EXPECT_DOUBLE_EQ(attention_bytes(shape).value(), 2 * (8 * 128 * 2 * 2 + 2 * 1000 * 128 * 2));
  shape.window = 100;
  EXPECT_DOUBLE_EQ(attention_bytes(shape).value(), 2 * (8 * 128 * 2 * 2 + 2 * 100 * 128 * 2));
}

TEST(AttentionShape, NamesItsParameters) {
  AttentionShape shape;
  EXPECT_EQ(attention_op(shape), "attention-decode");
  EXPECT_EQ(attention_variant(shape), "bf16");
  shape.cache = Precision::fp8;
  EXPECT_EQ(attention_variant(shape), "bf16 fp8-cache");
  shape.q_len = shape.kv_len = 512;
  EXPECT_EQ(attention_op(shape), "attention-prefill");
  shape.query = Precision::fp8;
  EXPECT_EQ(attention_variant(shape), "fp8");
  shape.causal = false;
  EXPECT_EQ(attention_op(shape), "attention-encoder");
  shape.backward = true;
  EXPECT_EQ(attention_op(shape), "attention-backward");
}

TEST(AttentionShape, KnowsWhoseKernelsRun) {
  EXPECT_EQ(attention_kernels("vllm", GpuArchitecture::hopper), AttentionKernels::flash3);
  EXPECT_EQ(attention_kernels("vllm", GpuArchitecture::ada), AttentionKernels::flash2);
  EXPECT_EQ(attention_kernels("sglang", GpuArchitecture::ampere), AttentionKernels::flash3);
  EXPECT_EQ(attention_kernels("tensorrt-llm", GpuArchitecture::hopper), AttentionKernels::fmha);
}

TEST(AttentionShape, WarnsOfHeadsThatNoFastKernelTakes) {
  AttentionShape shape;
  shape.heads = 64, shape.kv_heads = 1;
  EXPECT_THAT(attention_warning(shape, "tensorrt-llm"), HasSubstr("no fast decode kernel"));
  EXPECT_EQ(attention_warning(shape, "vllm"), "");
  shape.kv_heads = 8;
  EXPECT_EQ(attention_warning(shape, "tensorrt-llm"), "");
  shape.kv_heads = 2;
  EXPECT_THAT(attention_warning(shape, "tensorrt-llm"), HasSubstr("a third"));
  shape.q_len = shape.kv_len = 64;  // prefill has one
  EXPECT_EQ(attention_warning(shape, "tensorrt-llm"), "");
}

}  // namespace
}  // namespace orrery

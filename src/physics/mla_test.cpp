#include "physics/mla.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "catalog/catalog.h"

namespace orrery {
namespace {

template <class P>
P usual() {
  std::vector<double> starts;
  for (const auto& parameter : P::parameters()) starts.push_back(parameter.info.start);
  return parameters_from<P>(starts);
}

template <class P>
P fitted(const std::string& op, const std::string& library, const std::string& gpu) {
  static const Catalog catalog = Catalog::load(default_data_dir());
  const FoundSet found = catalog.kernel_sets().find(op, "bf16", library, catalog.gpu(gpu));
  EXPECT_TRUE(found.own_gpu && found.own_library);
  return parameters_from<P>(*found.set);
}

Device device(const std::string& gpu = "h100-sxm") {
  static const Catalog catalog = Catalog::load(default_data_dir());
  return device_of(catalog.gpu(gpu));
}

MlaDecodeShape decode(std::int64_t batch, std::int64_t heads, std::int64_t keys) {
  MlaDecodeShape shape;
  shape.batch = batch;
  shape.heads = heads;
  shape.keys = keys;
  return shape;
}

MlaPrefillShape prefill(std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                        bool absorbed = false) {
  MlaPrefillShape shape;
  shape.batch = batch;
  shape.heads = heads;
  shape.queries = shape.keys = tokens;
  shape.absorbed = absorbed;
  return shape;
}

double micros(const MlaDecodeShape& shape, const Device& on = device()) {
  return mla_decode_time(shape, usual<MlaDecodeParameters>(), on).time.value() * 1e6;
}
double micros(const MlaPrefillShape& shape, const Device& on = device()) {
  return mla_prefill_time(shape, usual<MlaPrefillParameters>(), on).time.value() * 1e6;
}

// aiconfigurator 095f58a, h100_sxm and a100_sxm, mla/trtllm: batch, heads, keys, us.
TEST(MlaDecode, IsNearTensorRtLlm) {
  struct Row {
    std::int64_t batch, heads, keys;
    double h100;
  };
  const auto p = fitted<MlaDecodeParameters>("mla-decode", "tensorrt-llm", "h100-sxm");
  for (const Row& row : {Row{64, 1, 65536, 1555}, Row{1024, 128, 8192, 3792}, Row{64, 16, 1024, 47},
                         Row{8, 64, 8, 15}, Row{1, 1, 131072, 71}}) {
    const KernelTime t = mla_decode_time(decode(row.batch, row.heads, row.keys), p, device());
    EXPECT_NEAR(t.time.value() * 1e6, row.h100, 0.15 * row.h100) << row.batch << " " << row.keys;
  }
}

// TensorRT-LLM on A100 splits no keys: one sequence of 8192 takes as long as sixteen.
TEST(MlaDecode, WaitsForOneSequenceOnA100) {
  const auto p = fitted<MlaDecodeParameters>("mla-decode", "tensorrt-llm", "a100-sxm-80gb");
  const auto at = [&](std::int64_t batch, std::int64_t keys) {
    return mla_decode_time(decode(batch, 8, keys), p, device("a100-sxm-80gb")).time.value() * 1e6;
  };
  EXPECT_NEAR(at(1, 8192), 944, 0.1 * 944);
  EXPECT_NEAR(at(16, 8192), 1012, 0.1 * 1012);
  EXPECT_NEAR(at(1024, 8192), 13057, 0.1 * 13057);
}

TEST(MlaPrefill, IsNearTensorRtLlm) {
  struct Row {
    std::int64_t batch, heads, tokens;
    double time;
  };
  const auto p = fitted<MlaPrefillParameters>("mla-prefill", "tensorrt-llm", "h100-sxm");
  for (const Row& row : {Row{2, 128, 8192, 9801}, Row{16, 64, 512, 357}, Row{1, 1, 32768, 816},
                         Row{256, 128, 1, 908}}) {
    const KernelTime t = mla_prefill_time(prefill(row.batch, row.heads, row.tokens), p, device());
    EXPECT_NEAR(t.time.value() * 1e6, row.time, 0.15 * row.time) << row.batch << " " << row.tokens;
  }
}

// 2 x 128 heads x 4096 x 4097 / 2 pairs x 320 values.
TEST(MlaPrefill, CountsCausalPairs) {
  const KernelTime t =
      mla_prefill_time(prefill(1, 128, 4096), usual<MlaPrefillParameters>(), device());
  EXPECT_DOUBLE_EQ(t.flop.value(), 2.0 * 128 * 4096 * 4097 / 2 * 320);
  MlaPrefillShape last = prefill(1, 128, 1);
  last.keys = 4096;
  EXPECT_DOUBLE_EQ(mla_prefill_time(last, usual<MlaPrefillParameters>(), device()).flop.value(),
                   2.0 * 128 * 4096 * 320);
}

// The cache is 576 values a token, whatever the heads: 1024 x 8192 x 576 x 2 B at 3.35 TB/s is
// 2885 us.
TEST(MlaDecode, ReadsTheLatentsOnce) {
  const KernelTime t =
      mla_decode_time(decode(1024, 64, 8192), usual<MlaDecodeParameters>(), device());
  EXPECT_NEAR(t.bytes.value(), 1024.0 * 8192 * 576 * 2, 0.02 * t.bytes.value());
  EXPECT_GT(t.time.value() * 1e6, 2885);
  EXPECT_EQ(t.bound, Bound::memory);
  MlaDecodeShape half = decode(1024, 64, 8192);
  half.element = Bytes(1);
  EXPECT_NEAR(micros(half) / (t.time.value() * 1e6), 0.5, 0.1);
}

TEST(MlaDecode, PadsHeadsTo64) {
  EXPECT_NEAR(micros(decode(256, 2, 8192)), micros(decode(256, 64, 8192)),
              0.03 * micros(decode(256, 2, 8192)));
  EXPECT_GT(micros(decode(256, 128, 8192)), 1.1 * micros(decode(256, 64, 8192)));
}

RC_GTEST_PROP(MlaDecode, GrowsAndStaysBelowThePeaks, ()) {
  const auto size = [](std::int64_t most) { return rc::gen::inRange<std::int64_t>(1, most); };
  const auto shape = decode(*size(2048), *size(256), *size(200'000));
  const KernelTime t = mla_decode_time(shape, usual<MlaDecodeParameters>(), device());
  RC_ASSERT(t.time >= t.flop / device().peak(Precision::bf16));
  RC_ASSERT(t.time >= t.bytes / device().memory);
  auto more = shape;
  more.batch *= 2;
  RC_ASSERT(micros(more) >= 0.999 * micros(shape));
  more = shape;
  more.keys *= 2;
  RC_ASSERT(micros(more) >= 0.999 * micros(shape));
  Device faster = device();
  faster.memory = 2 * faster.memory;
  RC_ASSERT(micros(shape, faster) <= 1.001 * micros(shape));
}

RC_GTEST_PROP(MlaPrefill, GrowsAndStaysBelowThePeak, ()) {
  const auto size = [](std::int64_t most) { return rc::gen::inRange<std::int64_t>(1, most); };
  const auto shape = prefill(*size(256), *size(256), *size(40'000), *rc::gen::arbitrary<bool>());
  const KernelTime t = mla_prefill_time(shape, usual<MlaPrefillParameters>(), device());
  RC_ASSERT(t.time >= t.flop / device().peak(Precision::bf16));
  auto more = shape;
  more.batch *= 2;
  RC_ASSERT(micros(more) >= 0.999 * micros(shape));
  more = shape;
  more.queries *= 2;
  more.keys *= 2;
  RC_ASSERT(micros(more) >= 0.999 * micros(shape));
}

TEST(Mla, IsFiniteForTheLargestShapes) {
  const std::int64_t most = std::int64_t{1} << 31;
  EXPECT_TRUE(std::isfinite(micros(decode(most, most, most))));
  EXPECT_TRUE(std::isfinite(micros(prefill(most, most, most))));
  EXPECT_TRUE(std::isfinite(micros(prefill(most, most, most, true))));
}

// A call that no graph replays takes as long as the host issues it, until its kernels take longer.
TEST(Mla, HidesBehindTheHost) {
  auto p = usual<MlaDecodeParameters>();
  p.host = Seconds(150e-6);
  const auto at = [&](std::int64_t batch) {
    return mla_decode_time(decode(batch, 16, 4096), p, device()).time.value() * 1e6;
  };
  EXPECT_NEAR(at(1), 150, 1);
  EXPECT_NEAR(at(1024), micros(decode(1024, 16, 4096)), 1);
}

}  // namespace
}  // namespace orrery

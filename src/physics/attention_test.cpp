#include "physics/attention.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "catalog/catalog.h"
#include "physics/attention_decode.h"

namespace orrery {
namespace {

template <class P>
P usual() {
  std::vector<double> starts;
  for (const auto& parameter : P::parameters()) starts.push_back(parameter.info.start);
  return parameters_from<P>(starts);
}

// 100 SMs, 500 TFLOP/s, 2 TB/s; nothing is drawn, so nothing is throttled.
Device plain() {
  Device device;
  device.sms = 100;
  device.boost = Hertz(1.5e9);
  device.memory = BytesPerSecond(2e12);
  device.l2 = Bytes(40e6);
  device.per_clock.fill(500e12 / 100 / 1.5e9);
  device.power.boost = device.boost;
  device.power.lowest = Hertz(0.3e9);
  device.power.reference = device.boost;
  device.limit = Watts(1000);
  return device;
}

// Decoding and the rest by one name.
KernelTime time_of(const AttentionShape& shape, const Device& device = plain()) {
  if (attention_op(shape) == "attention-decode") {
    return attention_decode_time(shape, usual<AttentionDecodeParameters>(), device);
  }
  return attention_time(shape, usual<AttentionParameters>(), device);
}

AttentionShape prefill(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                       std::int64_t head_dim, std::int64_t tokens) {
  AttentionShape shape;
  shape.batch = batch, shape.heads = heads, shape.kv_heads = kv_heads, shape.head_dim = head_dim;
  shape.q_len = shape.kv_len = tokens;
  return shape;
}

// One new token on kv_len keys, itself included.
AttentionShape decode(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t head_dim, std::int64_t kv_len) {
  AttentionShape shape = prefill(batch, heads, kv_heads, head_dim, 1);
  shape.kv_len = kv_len;
  return shape;
}

AttentionShape any_shape() {
  const auto power = [](int most) {
    return std::int64_t{1} << *rc::gen::inRange<int>(0, most + 1);
  };
  AttentionShape shape;
  shape.kv_heads = power(6);
  shape.heads = shape.kv_heads * power(5);
  shape.head_dim = *rc::gen::element<std::int64_t>(64, 80, 128, 192, 256);
  shape.batch = power(31);
  shape.q_len = *rc::gen::arbitrary<bool>() ? 1 : power(30);
  shape.kv_len = shape.q_len * power(1);
  shape.causal = *rc::gen::arbitrary<bool>();
  shape.window = *rc::gen::element<std::int64_t>(0, 128, 4096);
  shape.backward = *rc::gen::arbitrary<bool>();
  shape.writes_cache = *rc::gen::arbitrary<bool>();
  shape.cache = *rc::gen::element(Precision::bf16, Precision::fp8);
  shape.kernels =
      *rc::gen::element(AttentionKernels::flash3, AttentionKernels::flash2, AttentionKernels::fmha);
  return shape;
}

RC_GTEST_PROP(Attention, IsFiniteAndBelowTheRoofline, ()) {
  const AttentionShape shape = any_shape();
  const KernelTime time = time_of(shape);
  RC_ASSERT(std::isfinite(time.time.value()));
  RC_ASSERT(time.time > time.flop / plain().peak(Precision::bf16));
  RC_ASSERT(time.time > time.bytes / plain().memory);
  RC_ASSERT(time.flop == attention_flop(shape));
}

// FlashAttention-3 is asked only where it does not start to split its keys, which gains time.
RC_GTEST_PROP(Attention, GrowsWithBatchAndWithKeys, ()) {
  AttentionShape shape = any_shape();
  RC_PRE(shape.kernels != AttentionKernels::flash3);
  const Seconds before = time_of(shape).time;
  AttentionShape longer = shape, more = shape;
  longer.kv_len += *rc::gen::inRange<std::int64_t>(1, 5000);
  more.batch *= 2;
  RC_ASSERT(time_of(longer).time >= 0.9999999 * before);
  RC_ASSERT(time_of(more).time >= before);
}

RC_GTEST_PROP(Attention, GainsFromAWindow, ()) {
  AttentionShape shape = any_shape();
  RC_PRE(shape.kernels != AttentionKernels::flash3);
  shape.window = 0;
  const Seconds full = time_of(shape).time;
  shape.window = *rc::gen::inRange<std::int64_t>(1, shape.kv_len + 1);
  RC_ASSERT(time_of(shape).time <= 1.0000001 * full);
}

RC_GTEST_PROP(Attention, GainsFromBandwidthAndClock, ()) {
  const AttentionShape shape = any_shape();
  Device faster = plain();
  faster.memory *= 2;
  RC_ASSERT(time_of(shape, faster).time <= time_of(shape).time);
  faster = plain();
  faster.boost *= 1.5;
  faster.power.boost = faster.power.reference = faster.boost;
  RC_ASSERT(time_of(shape, faster).time <= time_of(shape).time);
}

TEST(Attention, OfCausalTokensIsAboutHalf) {
  AttentionShape shape = prefill(4, 32, 32, 128, 32768);
  const double causal = time_of(shape).time.value();
  shape.causal = false;
  EXPECT_NEAR(causal / time_of(shape).time.value(), 0.5, 0.02);
}

TEST(Attention, OfSharedKeysReadsFewer) {
  const KernelTime shared = time_of(decode(64, 32, 8, 128, 8192));
  const KernelTime own = time_of(decode(64, 32, 32, 128, 8192));
  EXPECT_NEAR(shared.bytes / own.bytes, 0.25, 0.01);
  EXPECT_LT(shared.time, 0.5 * own.time);
}

TEST(Attention, OfPackedTextsIsThatOfEachText) {
  AttentionShape packed = prefill(2, 16, 16, 128, 8192);
  packed.documents = 4;
  EXPECT_EQ(time_of(packed).time, time_of(prefill(8, 16, 16, 128, 2048)).time);
}

TEST(Attention, OfAPartOfCachedTokensIsBetweenDecodingAndAll) {
  AttentionShape chunk = prefill(1, 32, 8, 128, 512);
  chunk.kv_len = 8192;
  EXPECT_GT(time_of(chunk).time, time_of(prefill(1, 32, 8, 128, 512)).time);
  EXPECT_LT(time_of(chunk).time, time_of(prefill(1, 32, 8, 128, 8192)).time);
}

TEST(Attention, SplitsKeysAmongIdleSms) {
  AttentionShape shape = decode(1, 8, 1, 128, 65536);
  const Seconds split = time_of(shape).time;
  shape.batch = 100;  // every SM has a sequence of its own
  EXPECT_LT(split, 0.2 * time_of(shape).time);
}

TEST(Attention, WritesItsCacheAfterwards) {
  AttentionShape shape = prefill(8, 8, 8, 128, 2048);
  const Seconds without = time_of(shape).time;
  shape.writes_cache = true;
  EXPECT_GT(time_of(shape).time, without);
}

// --- fitted sets --------------------------------------------------------------------------------

const Catalog& catalog() {
  static const Catalog all = Catalog::load(default_data_dir());
  return all;
}

KernelTime fitted(AttentionShape shape, std::string_view library, const std::string& gpu_name) {
  const Gpu gpu = catalog().gpu(gpu_name);
  shape.kernels = attention_kernels(library, gpu.architecture);
  const FoundSet found =
      catalog().kernel_sets().find(attention_op(shape), attention_variant(shape), library, gpu);
  EXPECT_TRUE(found.own_gpu && found.own_library) << library << " " << gpu_name;
  const Device device = device_of(gpu);
  if (attention_op(shape) == "attention-decode") {
    return attention_decode_time(shape, parameters_from<AttentionDecodeParameters>(*found.set),
                                 device);
  }
  return attention_time(shape, parameters_from<AttentionParameters>(*found.set), device);
}

double teraflops(const KernelTime& time) { return (time.flop / time.time).value() / 1e12; }

// Ninetieth percentiles of the rows above 1 ms of vLLM 0.24 on H100 (data/measurements).
TEST(FittedAttention, ReachesThePlateausOfFlashAttention3) {
  const std::pair<std::int64_t, double> plateaus[] = {
      {64, 497}, {128, 620}, {192, 711}, {256, 741}};
  for (const auto& [head_dim, rate] : plateaus) {
    AttentionShape shape = prefill(2, 32, 4, head_dim, 16384);
    shape.writes_cache = true;
    EXPECT_NEAR(teraflops(fitted(shape, "vllm", "h100-sxm")), rate, 0.08 * rate) << head_dim;
  }
}

struct Cited {
  AttentionShape shape;
  std::string_view library;
  std::string gpu;
  double micros;
};

// Rows of data/measurements/attention.csv (aiconfigurator 095f58a), some of each library.
TEST(FittedAttention, IsCloseToCitedRows) {
  const Cited rows[] = {
      {prefill(4, 64, 8, 128, 4096), "vllm", "h100-sxm", 1902.2},
      {prefill(4, 64, 8, 128, 4096), "vllm", "h200-sxm", 1925.3},
      {prefill(1, 64, 8, 128, 8192), "vllm", "a100-sxm-80gb", 6203.6},
      {prefill(4, 64, 8, 128, 4096), "vllm", "l40s", 6130.0},
      {prefill(4, 64, 8, 128, 4096), "sglang", "a100-sxm-80gb", 5744.6},
      {prefill(4, 64, 8, 128, 4096), "tensorrt-llm", "h100-sxm", 2484.0},
      {prefill(1, 64, 8, 128, 8192), "tensorrt-llm", "a100-sxm-80gb", 8041.6},
      {decode(16, 48, 8, 128, 4096), "vllm", "h100-sxm", 114.69},
      {decode(16, 32, 4, 128, 8192), "vllm", "h100-sxm", 101.93},
      {decode(16, 48, 8, 128, 4096), "vllm", "h200-sxm", 83.147},
      {decode(16, 48, 8, 128, 4096), "vllm", "l40s", 428.2},
      {decode(64, 16, 4, 128, 4096), "sglang", "a100-sxm-80gb", 527.24},
      {decode(16, 32, 4, 128, 8192), "tensorrt-llm", "h100-sxm", 108.61},
  };
  for (Cited row : rows) {
    row.shape.writes_cache = row.shape.replayed = true;
    const double micros = fitted(row.shape, row.library, row.gpu).time.value() * 1e6;
    EXPECT_NEAR(micros, row.micros, 0.15 * row.micros)
        << row.library << " " << row.gpu << " " << row.shape.heads << "/" << row.shape.kv_heads
        << " x " << row.shape.head_dim << ", " << row.shape.kv_len;
  }
}

TEST(FittedAttention, IsFiniteAndWithinItsLimits) {
  int sets = 0;
  for (const KernelSet& set : catalog().kernel_sets().all()) {
    if (!set.op.starts_with("attention-")) continue;
    ++sets;
    const Device device = device_of(catalog().gpu(set.gpu));
    for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 31}) {
      const bool decodes = set.op == "attention-decode";
      AttentionShape shape =
          decodes ? decode(64, 32, 8, 128, tokens) : prefill(2, 32, 8, 128, tokens);
      shape.kernels = attention_kernels(set.library, set.architecture);
      const KernelTime time =
          decodes ? attention_decode_time(shape, parameters_from<AttentionDecodeParameters>(set),
                                          device)
                  : attention_time(shape, parameters_from<AttentionParameters>(set), device);
      EXPECT_TRUE(std::isfinite(time.time.value())) << set.place;
      EXPECT_GT(time.time, time.bytes / device.memory) << set.place;
      EXPECT_LE(time.power, device.limit * 1.001) << set.place;
    }
  }
  EXPECT_GT(sets, 15);
}

}  // namespace
}  // namespace orrery

// Laws of kernel times for every GPU of the catalog, and the few published points that bear on
// them.
#include "cost/kernel.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

struct Machinery {
  explicit Machinery(const std::string& name, const std::string& framework_name = "nemo",
                     std::optional<Watts> limit = std::nullopt)
      : gpu(catalog().gpu(name)),
        kernels(job_kernels(catalog(), gpu, limit)),
        rates(kernels.rates),
        framework(catalog().framework(framework_name)) {}

  KernelModel model(AttentionKernel attention = AttentionKernel::flash) const {
    return {kernels, framework, attention};
  }

  Gpu gpu;
  JobKernels kernels;
  const KernelRates& rates;
  Framework framework;
};

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k,
               Precision precision = Precision::fp16, Pass pass = Pass::forward) {
  Kernel kernel{};
  kernel.kind = OpKind::matmul;
  kernel.pass = pass;
  kernel.shape = Matmul{m, n, k};
  kernel.precision = precision;
  kernel.flop =
      Flop(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  return kernel;
}

Kernel attention(std::int64_t length, std::int64_t head_dim, Pass pass = Pass::forward) {
  Kernel kernel{};
  kernel.kind = OpKind::attention;
  kernel.pass = pass;
  kernel.shape = Attention{1, 32, 32, head_dim, length, length, true, 0};
  kernel.precision = Precision::bf16;
  const double pairs = static_cast<double>(length) * static_cast<double>(length) / 2;
  const double passes = pass == Pass::forward ? 1 : 2.5;
  kernel.flop = Flop(passes * 4 * 32 * static_cast<double>(head_dim) * pairs);
  return kernel;
}

double tflops(const Machinery& machinery, const Kernel& kernel) {
  return kernel.flop.value() / machinery.model()(kernel).value() / 1e12;
}

TEST(Kernel, NoProductBeatsThePeakOrTheMemoryOfAnyGpu) {
  for (const std::string& name : catalog().names(EntryKind::gpu)) {
    const Machinery machinery(name);
    const double peak = machinery.gpu.required_peak(Precision::fp16).value();
    const double bandwidth = machinery.gpu.memory.bandwidth.value().value();
    for (const std::int64_t m : {1, 64, 1000, 8192}) {
      for (const std::int64_t n : {128, 5120, 16384}) {
        for (const std::int64_t k : {128, 4096, 16384}) {
          const double time = machinery.model()(product(m, n, k)).value();
          EXPECT_GE(time, product(m, n, k).flop.value() / peak) << name;
          EXPECT_GE(time, 2.0 * static_cast<double>(n * k + m * k + m * n) / bandwidth) << name;
        }
      }
    }
  }
}

TEST(Kernel, MoreRowsNeverTakeLess) {
  for (const char* name : {"h100-sxm", "a100-sxm-80gb", "l40s", "b200", "v100-sxm2-32gb"}) {
    const Machinery machinery(name);
    double last = 0;
    for (std::int64_t m = 64; m <= 16384; m += 64) {
      const double now = machinery.model()(product(m, 8192, 8192)).value();
      EXPECT_GE(now, last * (1 - 1e-12)) << name << " " << m;
      last = now;
    }
  }
}

TEST(Kernel, ALongProductSustainsItsShareOfThePeak) {
  const Machinery h100("h100-sxm");
  const double sustained = h100.model().sustained(Precision::bf16).value() / 1e12;
  EXPECT_GT(sustained, 620);  // 800 alone, of which whole steps keep some 0.86
  EXPECT_LT(sustained, 740);
  const double reached = tflops(h100, product(16384, 16384, 16384, Precision::bf16));
  EXPECT_LT(reached, 1.001 * sustained);
  EXPECT_GT(reached, 0.95 * sustained);
  // A short inner dimension pays for its epilogue: k / (k + k0), k0 of one to three hundred.
  const double short_k = tflops(h100, product(16384, 16384, 256, Precision::bf16));
  EXPECT_LT(short_k, 0.7 * sustained);
  EXPECT_GT(short_k, 0.4 * sustained);
}

// Waves are whole on A100 and nearly smooth under Hopper's libraries: one more tile than fills the
// 108 or 132 SMs costs a wave on the first, a sliver on the second.
TEST(Kernel, AWaveIsQuantisedByTheArchitecture) {
  const auto step = [](const char* name, std::int64_t sms) {
    const Machinery machinery(name);
    const auto time = [&](std::int64_t tiles) {
      return machinery.model()(product(128, 256 * tiles, 8192)).value();
    };
    return time(sms + 1) / time(sms);
  };
  EXPECT_GT(step("a100-sxm-80gb", 108), 1.2);
  EXPECT_LT(step("h100-sxm", 132), 1.1);
}

TEST(Kernel, AlignedShapesAreFaster) {
  const Machinery a100("a100-sxm-80gb");
  EXPECT_GT(a100.model()(product(4096, 7200, 14400)), a100.model()(product(4096, 7232, 14400)));
}

TEST(Kernel, AddingAWeightGradientIsHiddenOnlyWhereItIsFused) {
  const Kernel gradient = product(8192, 8192, 2048, Precision::bf16, Pass::weight_gradient);
  const Kernel plain = product(8192, 8192, 2048, Precision::bf16);
  const Machinery fused("h100-sxm", "megatron"), apart("h100-sxm", "fsdp");
  const double sum = 8 * 8192.0 * 8192.0 / apart.model().stream().value();
  EXPECT_NEAR((apart.model()(gradient) - apart.model()(plain)).value(), sum, 1e-9);
  EXPECT_LT((fused.model()(gradient) - fused.model()(plain)).value(), sum / 2);
}

// No product of an H100 PCIe was published; two models bracket it at 330 to 530 TFLOP/s of 756.
TEST(Kernel, APowerLimitHoldsMatrixWorkBack) {
  const Machinery sxm("h100-sxm"), sxm300("h100-sxm", "nemo", Watts(300)), pcie("h100-pcie");
  double last = 0;  // each watt less costs speed, since long products draw the whole limit
  for (const double watts : {200.0, 300.0, 400.0, 500.0, 600.0, 700.0}) {
    const Machinery capped("h100-sxm", "nemo", Watts(watts));
    const double now = capped.model().sustained(Precision::bf16).value();
    EXPECT_GT(now, last);
    last = now;
  }
  const double held = pcie.model().sustained(Precision::bf16).value() / 1e12;
  EXPECT_GT(held, 330);
  EXPECT_LT(held, 500);
  // Memory-bound work does not slow down.
  Kernel norm{};
  norm.kind = OpKind::norm;
  norm.read = norm.written = Bytes(1e9);
  EXPECT_EQ(sxm300.model()(norm), sxm.model()(norm));
}

TEST(Kernel, AttentionGainsWithLengthAndHeadWidthAndLosesBackwards) {
  const Machinery h100("h100-sxm");
  EXPECT_GT(tflops(h100, attention(16384, 128)), tflops(h100, attention(2048, 128)));
  EXPECT_GT(tflops(h100, attention(8192, 128)), tflops(h100, attention(8192, 64)));
  EXPECT_GT(tflops(h100, attention(8192, 128)),
            tflops(h100, attention(8192, 128, Pass::data_gradient)));
  // FlashAttention-3 reaches 620 TFLOP/s alone at width 128; within training steps 360 to 450.
  const double rate = tflops(h100, attention(16384, 128));
  EXPECT_GT(rate, 330);
  EXPECT_LT(rate, 620);
}

TEST(Kernel, EarlyFlashAttentionIsSlowerOnHopper) {
  const Machinery h100("h100-sxm");
  EXPECT_GT(h100.model(AttentionKernel::early_flash)(attention(8192, 128)),
            1.5 * h100.model()(attention(8192, 128)));
}

TEST(Kernel, EverythingElseIsBytes) {
  const Machinery h100("h100-sxm");
  Kernel norm{};
  norm.kind = OpKind::norm;
  norm.read = norm.written = Bytes(1e9);
  const double expected = 2e9 / (3.35e12 * h100.rates.stream.value());
  EXPECT_NEAR(h100.model()(norm).value(), expected + h100.rates.start.value().value(), 1e-12);
}

// Sixteen products of a sixteenth each, as experts have them.
Kernel grouped(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups,
               Precision precision) {
  Kernel kernel = product(m, n, k, precision);
  kernel.shape = Matmul{m, n, k, groups};
  kernel.of_experts = true;
  return kernel;
}

TEST(KernelModel, ManyExpertsRunAtTheirShareOfTheRateAndReadAllTheirWeights) {
  const Machinery h100("h100-sxm");
  for (const Precision precision : {Precision::bf16, Precision::fp8}) {
    const bool eight = precision == Precision::fp8;
    const auto& experts = h100.framework.experts;
    const double share = (eight ? experts.eight_bit : experts.sixteen_bit).value();
    // Tokens enough that arithmetic alone decides.
    const std::int64_t m = 16 * 16384;
    const double apart = 16 * h100.model()(product(m / 16, 4096, 4096, precision)).value();
    const double together = h100.model()(grouped(m, 4096, 4096, 16, precision)).value();
    EXPECT_NEAR(apart / together, share, 0.05 * share);
    // So few that weights decide: as long as reading them takes, whatever the rate.
    const double bytes = 64.0 * 4096 * 4096 * element_size(precision).value();
    EXPECT_GE(h100.model()(grouped(64, 4096, 4096, 64, precision)).value(),
              bytes / h100.model().stream().value());
  }
}

TEST(KernelModel, AMatrixInFourBitsTakesItsDequantisationLonger) {
  const Machinery a100("a100-sxm-80gb", "hf");
  Kernel kernel = product(4096, 4096, 4096, Precision::bf16);
  const double plain = a100.model()(kernel).value();
  kernel.dequantised = 4096.0 * 4096;
  // 14 bytes a weight at the attainable bandwidth: about 8 ps, as Qwen's Q-LoRA runs show.
  const double each = (a100.model()(kernel).value() - plain) / kernel.dequantised;
  EXPECT_NEAR(each, 8e-12, 1.5e-12);
}

}  // namespace
}  // namespace orrery

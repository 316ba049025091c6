#include "twin/power.h"

#include <gtest/gtest.h>

#include <string>

#include "catalog/catalog.h"
#include "cost/price.h"
#include "twin/twin.h"

namespace orrery {
namespace {

using namespace literals;

using Values = std::map<std::string, std::string>;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

Answer training_on(const std::string& gpu, double cap) {
  Values values = {{"model", "llama-3.1-8b"}, {"gpu", gpu}, {"gpus", "8"}, {"tp", "4"},
                   {"global-batch", "64"},    {"zero", "1"}};
  if (cap > 0) values["power-cap"] = std::to_string(cap);
  return predict(
      resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog()));
}

TEST(JobPower, ALowerCapIsNeverFasterAndNeverDrawsMore) {
  for (const char* gpu : {"h100-sxm", "a100-sxm-80gb", "h200-sxm"}) {
    Answer before = training_on(gpu, 0);
    for (const double cap : {390., 340., 300., 250., 200.}) {
      const Answer capped = training_on(gpu, cap);
      EXPECT_GE(capped.step, before.step) << gpu << " " << cap;
      EXPECT_LE(capped.gpu_power, before.gpu_power) << gpu << " " << cap;
      EXPECT_LE(capped.gpu_power, Watts(cap)) << gpu << " " << cap;
      before = capped;
    }
  }
}

// POLCA (ASPLOS 2024, a fleet of A100): a fifth less peak power costs training about a tenth of its
// speed. Training draws 97 % of the limit at its peak, less on average.
TEST(JobPower, AFifthLessPowerCostsATenthOfTheSpeed) {
  const Answer full = training_on("a100-sxm-80gb", 0);
  const Answer less = training_on("a100-sxm-80gb", 320);
  const double lost = 1 - full.step / less.step;
  EXPECT_GE(lost, 0);
  EXPECT_LE(lost, 0.10);
  EXPECT_GT(full.gpu_power, 250_W);
}

// On H100, whose products stand at the limit, it costs more than on A100 and less than a fifth.
TEST(JobPower, OnH100ItCostsMore) {
  const double lost = 1 - training_on("h100-sxm", 0).step / training_on("h100-sxm", 560).step;
  EXPECT_GT(lost, 0.03);
  EXPECT_LT(lost, 0.20);
}

// The busy share of a step draws what its kernels do and the rest an idle context's power.
TEST(JobPower, WaitingDrawsAnIdleContextsPower) {
  Program nothing;
  nothing.classes.push_back(
      {.name = "all", .ranks = 8, .stage = 0, .buffers = {}, .blocks = {}, .step = {}});
  Prices prices{};
  prices.update = BytesPerSecond(1e12);
  const Device device = device_of(catalog().gpu("h100-sxm"));
  EXPECT_NEAR(mean_gpu_power(nothing, prices, device, 1_s).value(), 71.8 + 49.9, 1e-9);
  // An update of 1 TB over half of a 2 s step.
  RankClass& ranks = nothing.classes[ClassId(0)];
  ranks.step.push_back({.what = Update{1, Bytes(0.6e12), Bytes(0.4e12)}});
  EXPECT_NEAR(mean_gpu_power(nothing, prices, device, 2_s).value(), 121.7 + 122. / 2, 1e-6);
  // On the host it is none of the GPU's.
  ranks.step.clear();
  ranks.step.push_back({.what = Update{1, Bytes(0.6e12), Bytes(0.4e12), true}});
  EXPECT_NEAR(mean_gpu_power(nothing, prices, device, 2_s).value(), 121.7, 1e-9);
}

}  // namespace
}  // namespace orrery

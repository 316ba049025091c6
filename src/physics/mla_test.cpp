// Laws of latent attention under every fitted set.
#include "physics/mla.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catalog/catalog.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

template <class Check>
void each_set(std::string_view op, const Check& check) {
  int sets = 0;
  for (const KernelSet& set : catalog().kernel_sets().all()) {
    if (set.op != op) continue;
    check(set, device_of(catalog().gpu(set.gpu)));
    ++sets;
  }
  EXPECT_GT(sets, 3) << op;
}

TEST(MlaDecode, IsFiniteAndNeverShortensWithMoreKeysSequencesOrBandwidth) {
  each_set("mla-decode", [](const KernelSet& set, const Device& device) {
    const auto p = parameters_from<MlaDecodeParameters>(set);
    const auto time = [&](std::int64_t batch, std::int64_t keys, const Device& on) {
      return mla_decode_time({.batch = batch, .heads = 16, .keys = keys}, p, on).time;
    };
    Device wider = device;
    wider.memory *= 1.5;
    for (const std::int64_t keys : {64, 1024, 65536, 1 << 30}) {
      EXPECT_TRUE(std::isfinite(time(1, keys, device).value())) << set.place;
      EXPECT_LE(time(8, keys, device), 1.001 * time(8, 4 * keys, device)) << set.place;
      EXPECT_LE(time(8, keys, device), 1.001 * time(64, keys, device)) << set.place;
      EXPECT_LE(time(64, keys, wider), 1.001 * time(64, keys, device)) << set.place;
    }
  });
}

TEST(MlaDecode, NeverReadsTheCacheFasterThanTheMemory) {
  each_set("mla-decode", [](const KernelSet& set, const Device& device) {
    const auto p = parameters_from<MlaDecodeParameters>(set);
    const KernelTime time = mla_decode_time({.batch = 64, .heads = 16, .keys = 65536}, p, device);
    const Bytes cache(64.0 * 65536 * 576 * 2);
    EXPECT_GE(time.bytes, cache) << set.place;
    EXPECT_LE(time.bytes / time.time, device.memory) << set.place;
  });
}

TEST(MlaPrefill, IsNeverAboveThePeakAndGrowsWithItsQueries) {
  each_set("mla-prefill", [](const KernelSet& set, const Device& device) {
    const auto p = parameters_from<MlaPrefillParameters>(set);
    Seconds last;
    for (const std::int64_t tokens : {256, 1024, 4096, 16384}) {
      const KernelTime time =
          mla_prefill_time({.batch = 2, .heads = 32, .queries = tokens, .keys = tokens}, p, device);
      EXPECT_LE(time.flop / time.time, device.peak(Precision::bf16)) << set.place;
      EXPECT_GE(time.time, last) << set.place;
      last = time.time;
    }
  });
}

}  // namespace
}  // namespace orrery

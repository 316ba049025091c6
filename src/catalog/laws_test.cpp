// Laws that every entry of the catalog keeps: is it possible?
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "catalog/catalog.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

// Every number outside a fact, by its path.
void bare_numbers(const Json& json, const std::string& path, std::vector<std::string>& found) {
  if (json.is_number()) found.push_back(path);
  if (!json.is_object() || json.contains("evidence")) return;
  for (const auto& [key, value] : json.members()) bare_numbers(value, path + "." + key, found);
}

TEST(CatalogLaws, EveryMachineIsReadable) {
  for (const auto& name : catalog().names(EntryKind::gpu))
    EXPECT_NO_THROW(catalog().gpu(name)) << name;
  for (const auto& name : catalog().names(EntryKind::node))
    EXPECT_NO_THROW(catalog().node(name)) << name;
  for (const auto& name : catalog().names(EntryKind::fabric)) {
    EXPECT_NO_THROW(catalog().fabric(name)) << name;
  }
}

TEST(CatalogLaws, EveryFrameworkAndKernelTableIsReadable) {
  for (const auto& name : catalog().names(EntryKind::framework)) {
    EXPECT_NO_THROW(catalog().framework(name)) << name;
  }
  for (const auto& name : catalog().names(EntryKind::kernels)) {
    const CatalogEntry& entry = catalog().entry(EntryKind::kernels, name);
    EXPECT_NO_THROW(kernel_rates_from_json(entry.json, entry.place)) << name;
  }
}

TEST(CatalogLaws, EveryModelIsReadable) {
  for (const auto& name : catalog().names(EntryKind::model)) {
    EXPECT_NO_THROW(catalog().model(name)) << name;
  }
}

TEST(CatalogLaws, NoNumberOfAMachineStandsWithoutEvidence) {
  for (const EntryKind kind :
       {EntryKind::gpu, EntryKind::node, EntryKind::fabric, EntryKind::power}) {
    for (const auto& name : catalog().names(kind)) {
      std::vector<std::string> found;
      bare_numbers(catalog().entry(kind, name).json, name, found);
      EXPECT_TRUE(found.empty()) << found.front();
    }
  }
}

TEST(CatalogLaws, EverySourceIsUsed) {
  for (const EntryKind kind : {EntryKind::gpu, EntryKind::power}) {
    for (const auto& name : catalog().names(kind)) {
      const Json& json = catalog().entry(kind, name).json;
      const std::string text = json.dump();
      for (const auto& [key, source] : json["sources"].members()) {
        EXPECT_NE(text.find("\"source\":\"" + key + "\""), std::string::npos) << name << " " << key;
      }
    }
  }
}

TEST(CatalogLaws, EveryGpuHasTheEnergiesOfItsPrecisions) {
  for (const auto& name : catalog().names(EntryKind::gpu)) {
    const Gpu gpu = catalog().gpu(name);
    for (const Precision precision : all_precisions) {
      if (!gpu.supports(precision)) continue;
      EXPECT_TRUE(gpu.power.set.energy[static_cast<std::size_t>(precision)].known())
          << name << " " << to_text(precision);
    }
  }
}

TEST(CatalogLaws, PrecisionsComeWithTheirArchitecture) {
  for (const auto& name : catalog().names(EntryKind::gpu)) {
    const Gpu gpu = catalog().gpu(name);
    EXPECT_EQ(gpu.supports(Precision::fp4), gpu.architecture >= GpuArchitecture::blackwell) << name;
    EXPECT_EQ(gpu.supports(Precision::fp8), gpu.architecture >= GpuArchitecture::ada) << name;
    EXPECT_EQ(gpu.supports(Precision::bf16), gpu.architecture >= GpuArchitecture::ampere) << name;
    EXPECT_EQ(gpu.supports(Precision::tf32), gpu.architecture >= GpuArchitecture::ampere) << name;
    EXPECT_TRUE(gpu.supports(Precision::fp16)) << name;
  }
}

TEST(CatalogLaws, NarrowerNumbersAreNeverSlower) {
  for (const auto& name : catalog().names(EntryKind::gpu)) {
    const Gpu gpu = catalog().gpu(name);
    FlopPerSecond before;
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16, Precision::fp8, Precision::fp4}) {
      if (!gpu.supports(precision)) continue;
      EXPECT_GE(*gpu.peak(precision), before) << name << " " << to_text(precision);
      before = *gpu.peak(precision);
    }
  }
}

// A published peak is SMs x FLOP per clock and SM x clock, with a whole number of units.
TEST(CatalogLaws, SixteenBitPeaksAreWholeNumbersOfUnits) {
  const std::map<std::string, double> narrower = {
      {"rtx-4090", 512}, {"rtx-3090", 512}, {"h20", 1024}};
  const std::map<GpuArchitecture, double> usual = {{GpuArchitecture::volta, 1024},
                                                   {GpuArchitecture::ampere, 2048},
                                                   {GpuArchitecture::ada, 1024},
                                                   {GpuArchitecture::hopper, 4096},
                                                   {GpuArchitecture::blackwell, 8192}};
  for (const auto& name : catalog().names(EntryKind::gpu)) {
    const Gpu gpu = catalog().gpu(name);
    const auto other = narrower.find(name);
    const double expected = other == narrower.end() ? usual.at(gpu.architecture) : other->second;
    EXPECT_NEAR(gpu.flop_per_clock(Precision::fp16)->value() / expected, 1, 0.01) << name;
  }
}

TEST(CatalogLaws, MemoryAndPowerArePossible) {
  for (const auto& name : catalog().names(EntryKind::gpu)) {
    const Gpu gpu = catalog().gpu(name);
    // GPUs with 2^30 bytes to the GB on the box list a little more than the decimal figure.
    EXPECT_GT(gpu.memory.usable.value() / gpu.memory.nominal.value(), 0.95) << name;
    EXPECT_LT(gpu.memory.usable.value() / gpu.memory.nominal.value(), 1.08) << name;
    const Watts limit = gpu.power.limit.value();
    EXPECT_LE(limit, gpu.power.highest.value_or(limit)) << name;
    EXPECT_LT(gpu.power.lowest.value_or(Watts(0)), limit) << name;
    EXPECT_LT(gpu.power.idle.value_or(Watts(0)), limit) << name;
    EXPECT_LE(gpu.price.low.value_or(DollarsPerSecond(0)),
              gpu.price.on_demand.value_or(DollarsPerSecond(0)))
        << name;
    EXPECT_LE(gpu.price.on_demand.value_or(DollarsPerSecond(0)),
              gpu.price.high.value_or(DollarsPerSecond(0)))
        << name;
  }
}

TEST(CatalogLaws, EveryGpuSitsInANodeThatTakesIt) {
  for (const auto& name : catalog().names(EntryKind::gpu)) {
    const Gpu gpu = catalog().gpu(name);
    const Node node = catalog().node(gpu.node);
    EXPECT_TRUE(node.takes_gpu(name)) << name;
    EXPECT_TRUE(node.link == GpuLink::pcie || gpu.nvlink) << name;
  }
}

TEST(CatalogLaws, EveryNodeNamesThingsThatExist) {
  for (const auto& name : catalog().names(EntryKind::node)) {
    const Node node = catalog().node(name);
    if (node.fabric) {
      EXPECT_TRUE(catalog().has(EntryKind::fabric, *node.fabric)) << name;
    }
    for (const std::string& gpu : node.takes) {
      EXPECT_TRUE(gpu == "any" || catalog().has(EntryKind::gpu, gpu)) << name << " " << gpu;
    }
  }
}

TEST(CatalogLaws, ANodesNetworkCardsCarryItsFabric) {
  for (const auto& name : catalog().names(EntryKind::node)) {
    const Node node = catalog().node(name);
    if (!node.fabric) continue;
    const BytesPerSecond cards = node.nic_rate.value() * static_cast<double>(node.nics.value());
    const std::int64_t gpus = node.gpus.value();
    const BytesPerSecond fabric =
        catalog().fabric(*node.fabric).per_gpu(gpus) * static_cast<double>(gpus);
    EXPECT_NEAR(fabric / cards, 1, 1e-9) << name;
  }
}

}  // namespace
}  // namespace orrery

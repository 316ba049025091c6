#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;
namespace fs = std::filesystem;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// A data folder of a test's own, removed at its end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("orrery_catalog_" + unique())) {
    fs::create_directories(path_ / "fabrics");
  }
  ~Folder() { fs::remove_all(path_); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(path_ / file) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  static std::string unique() {
    return std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  fs::path path_;
};

TEST(Catalog, FindsThingsByNameAndByAliasInAnyCase) {
  EXPECT_EQ(catalog().gpu("h100-sxm").name, "h100-sxm");
  EXPECT_EQ(catalog().gpu("H100").name, "h100-sxm");
  EXPECT_EQ(catalog().gpu("H100_SXM").name, "h100-sxm");
  EXPECT_EQ(catalog().node("hgx-h100").name, "dgx-h100");
  EXPECT_EQ(catalog().fabric("NDR400").name, "ndr400-rail");
  EXPECT_EQ(catalog().model("llama3-70b").name, "llama-3-70b");
}

TEST(Catalog, SaysWhatWasMeant) {
  EXPECT_EQ(refusal([] { catalog().gpu("h100-sxn"); }),
            "no gpu \"h100-sxn\" in the catalog; did you mean \"h100-sxm\"?");
  EXPECT_EQ(refusal([] { catalog().model("llama-3.1-71b"); }),
            "no model \"llama-3.1-71b\" in the catalog; did you mean \"llama-3.1-70b\"?");
  EXPECT_EQ(refusal([] { catalog().entry("something else"); }),
            "no entry \"something else\" in the catalog; `orrery catalog` lists what there is");
}

TEST(Catalog, ReadsAGpuInBaseUnits) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  EXPECT_EQ(gpu.architecture, GpuArchitecture::hopper);
  EXPECT_EQ(gpu.sms.value(), 132);
  EXPECT_DOUBLE_EQ(*gpu.peak(Precision::bf16) / 1_TFLOPs, 989.4);
  EXPECT_DOUBLE_EQ(gpu.memory.bandwidth.value() / 1_TBps, 3.35);
  EXPECT_DOUBLE_EQ(gpu.memory.usable.value() / 1_MiB, 81559);
  EXPECT_DOUBLE_EQ(gpu.nvlink->bandwidth.value() / 1_GBps, 450);
  EXPECT_DOUBLE_EQ(gpu.power.limit.value() / 1_W, 700);
  EXPECT_NEAR(gpu.price.on_demand.value() * 1_h / 1_USD, 3.99, 1e-9);
  EXPECT_FALSE(gpu.peak(Precision::fp4));
  EXPECT_EQ(refusal([&] { gpu.required_peak(Precision::fp4); }),
            "h100-sxm has no fp4 units (it has fp64, fp32, tf32, fp16, bf16, fp8, int8)");
}

TEST(Catalog, KnowsThatAnA100HasNoFp8) {
  EXPECT_EQ(refusal([] { catalog().gpu("a100").required_peak(Precision::fp8); }),
            "a100-sxm-80gb has no fp8 units (it has fp64, fp32, tf32, fp16, bf16, int8)");
}

TEST(Catalog, NamesPrecisions) {
  for (const Precision precision : all_precisions) {
    EXPECT_EQ(precision_of(to_text(precision)), precision);
  }
  EXPECT_EQ(refusal([] { precision_of("bf61", "--precision"); }),
            "--precision: no precision \"bf61\" (there are fp64, fp32, tf32, fp16, bf16, fp8, "
            "int8, fp4); did you mean \"bf16\"?");
}

TEST(Catalog, GivesTheEntryAsItWasWritten) {
  const CatalogEntry& entry = catalog().entry("llama3-70b");
  EXPECT_EQ(entry.kind, EntryKind::model);
  EXPECT_EQ(entry.name, "llama-3-70b");
  EXPECT_TRUE(entry.json["config"].contains("hidden_size"));
  EXPECT_TRUE(entry.json["sources"].contains("s1"));
}

TEST(Catalog, ListsNamesInOrder) {
  const auto gpus = catalog().names(EntryKind::gpu);
  EXPECT_TRUE(std::ranges::is_sorted(gpus));
  EXPECT_TRUE(std::ranges::find(gpus, "h100-sxm") != gpus.end());
  EXPECT_GE(catalog().names().size(), gpus.size());
}

TEST(Catalog, LoadsFast) {
  const auto start = std::chrono::steady_clock::now();
  Catalog::load(default_data_dir());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 0.5);  // 0.05 is the aim; a busy machine and sanitizers need room
}

TEST(Catalog, TakesTheDataFolderFromTheEnvironment) {
  const std::string usual = default_data_dir();
  setenv("ORRERY_DATA", "/elsewhere", 1);
  EXPECT_EQ(default_data_dir(), "/elsewhere");
  setenv("ORRERY_DATA", usual.c_str(), 1);
}

TEST(Catalog, RefusesAFolderWithoutEntries) {
  EXPECT_EQ(refusal([] { Catalog::load("/nowhere"); }),
            "/nowhere: no catalog here; set ORRERY_DATA to the data folder");
}

TEST(Catalog, RefusesNamesThatCannotBeFoundAgain) {
  Folder folder;
  folder.write("fabrics/a.json", R"({"name": "b"})");
  EXPECT_EQ(refusal([&] { Catalog::load(folder.path()); }),
            folder.path() + "/fabrics/a.json: name: must be the name of the file, not \"b\"");
  folder.write("fabrics/a.json", R"({"name": "a", "aliases": ["A b"]})");
  EXPECT_EQ(refusal([&] { Catalog::load(folder.path()); }),
            folder.path() +
                "/fabrics/a.json: the name \"A b\" is not in lower case with dashes; "
                "write it \"a-b\"");
  folder.write("fabrics/a.json", R"({"name": "a"})");
  folder.write("fabrics/b.json", R"({"name": "b", "aliases": ["a"]})");
  EXPECT_EQ(refusal([&] { Catalog::load(folder.path()); }),
            folder.path() + "/fabrics/b.json: the name \"a\" is taken (by " + folder.path() +
                "/fabrics/a.json)");
}

TEST(Catalog, PointsAtWhatIsWrongInAnEntry) {
  Folder folder;
  folder.write("fabrics/a.json", R"({"name": "a", "title": "t", "kind": "roce", "port": "gpu",
    "rate": {"value": "0 GB/s", "evidence": "assumed", "source": "s1"}, "sources": {}})");
  const Catalog broken = Catalog::load(folder.path());
  EXPECT_EQ(refusal([&] { broken.fabric("a"); }),
            folder.path() + "/fabrics/a.json: rate: must be more than zero");
}

TEST(Catalog, ReadsThePowerSetThatAGpuNames) {
  const Gpu gpu = catalog().gpu("h100-sxm");
  EXPECT_EQ(gpu.power.set.name, "hopper-power");
  EXPECT_NEAR(gpu.power.set.memory.value().value(), 122e-12, 1e-18);
  Json json = catalog().entry(EntryKind::power, "hopper-power").json;
  Json above = json["voltage_floor"];
  above.set("value", 1.5);
  json.set("voltage_floor", above);
  EXPECT_EQ(refusal([&] { power_set_from_json(json, "p"); }),
            "p: voltage_floor: must be at most 1");
}

}  // namespace
}  // namespace orrery

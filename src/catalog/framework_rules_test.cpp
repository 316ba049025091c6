#include "catalog/framework_rules.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "core/error.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog catalog = Catalog::load(default_data_dir());
  return catalog;
}

TEST(FrameworkRules, EveryEntryIsReadable) {
  for (const auto& name : catalog().names(EntryKind::rules)) {
    EXPECT_FALSE(catalog().rules(name).title.empty()) << name;
  }
}

// NVIDIA/TensorRT-LLM#1249: release 0.8 wants as many key-value heads as GPUs; lifted since.
TEST(FrameworkRules, HoldUntilAVersion) {
  const auto one_each = [](std::string_view version) {
    return catalog().rules("tensorrt-llm-rules", version).kv_heads->has("one-each");
  };
  EXPECT_TRUE(one_each("0.8"));
  EXPECT_TRUE(one_each("0.8.0"));
  EXPECT_FALSE(one_each("0.9"));
  EXPECT_FALSE(one_each("0.10"));
  EXPECT_FALSE(one_each(""));
  EXPECT_THROW(one_each("new"), InputError);
  EXPECT_THROW(one_each("0."), InputError);
}

TEST(FrameworkRules, AnAbsentRuleRefusesNothing) {
  const FrameworkRules vllm = catalog().rules("vllm-rules");
  EXPECT_TRUE(accepts(vllm.schedules, "1f1b"));
  const FrameworkRules fsdp = catalog().rules("fsdp-rules");
  EXPECT_FALSE(accepts(fsdp.schedules, "1f1b"));  // it has no pipelines
  EXPECT_FALSE(accepts(fsdp.zero, "1"));
  EXPECT_TRUE(accepts(fsdp.zero, "3"));
}

TEST(FrameworkRules, NameTheirSource) {
  EXPECT_EQ(catalog().framework("torchtitan").rules.kv_heads->source, "pytorch/torchtitan#2574");
  const Json json =
      Json::object({{"name", "x-rules"},
                    {"title", "X"},
                    {"vocab_multiple", 1},
                    {"zero", Json::object({{"accepts", Json::array()}, {"source", "s"}})},
                    {"sources", Json::object({})}});
  EXPECT_THROW(framework_rules_from_json(json, "x"), InputError);
}

}  // namespace
}  // namespace orrery

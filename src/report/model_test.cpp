// A model as it is described, to people and to programs.
#include "report/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "catalog/catalog.h"

namespace orrery {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Architecture model(const std::string& name) {
  static const Catalog catalog = Catalog::load(default_data_dir());
  return catalog.model(name);
}

std::string printed(const std::string& name) {
  std::ostringstream out;
  print_model(out, model(name), 4096, {});
  return out.str();
}

TEST(ModelReport, EqualLayersAreFoldedWhateverTheirOrder) {
  const auto folded = folded_runs(model("gemma-3-27b"));  // five local layers, then a global one
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(folded[0].count, 52);
  EXPECT_EQ(folded[0].kind.window, 1024);
  EXPECT_EQ(folded[1].count, 10);
}

TEST(ModelReport, PartsAddUpToTheTotal) {
  for (const char* name : {"deepseek-v3", "gemma-3-27b", "mamba-2.8b", "t5-base", "gpt2"}) {
    const Json json = model_json(model(name), 512);
    std::int64_t sum = 0;
    for (const auto& [part, weights] : json["parameters"]["by_part"].members()) {
      sum += weights.as_integer();
    }
    EXPECT_EQ(sum, json["parameters"]["total"].as_integer()) << name;
  }
}

// Llama 3.1 8B: 16.06 GB of bf16; 128 KiB of keys and values a token, 16 GiB at 131072.
TEST(ModelReport, MemoryIsThatOfAnyServer) {
  const Json json = model_json(model("llama-3.1-8b"), 4096);
  EXPECT_DOUBLE_EQ(json["weights_gib"]["bf16"].as_double(), 2 * 8030261248.0 / (1 << 30));
  EXPECT_DOUBLE_EQ(json["weights_gib"]["int4"].as_double(), 0.5 * 8030261248.0 / (1 << 30));
  EXPECT_EQ(json["kv_bytes_per_token"].as_double(), 131072);
  EXPECT_EQ(json["kv_gib"]["bf16"].as_double(), 16);
  EXPECT_EQ(json["experts"], Json());
}

TEST(ModelReport, SaysOnlyWhatAModelHas) {
  EXPECT_THAT(printed("mamba-2.8b"),
              AllOf(HasSubstr("64 mamba   selective scan"), HasSubstr("state of a sequence"),
                    Not(HasSubstr("keys and values")), Not(HasSubstr("heads")),
                    Not(HasSubstr("activation")), Not(HasSubstr("active for"))));
  EXPECT_THAT(printed("deepseek-v3"),
              AllOf(HasSubstr("3 dense     latent attention, feed-forward of 18,432"),
                    HasSubstr("8 of 256 experts of 2,048 and a shared one of 2,048"),
                    HasSubstr("37,552,297,472"), HasSubstr("multi-token prediction")));
}

TEST(ModelReport, NamesWhatTheFamilyFilledIn) {
  EXPECT_THAT(printed("gpt2"), HasSubstr("tie_word_embeddings = true (gpt2)"));
}

}  // namespace
}  // namespace orrery

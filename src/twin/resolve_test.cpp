#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "twin/scenario.h"

namespace orrery {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const Catalog& catalog() {
  static const Catalog all = Catalog::load(default_data_dir());
  return all;
}

using Values = std::map<std::string, std::string>;

Request asking(const Values& values) {
  Request request{.values = {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"gpus", "16"}},
                  .architecture = {},
                  .place = std::string(command_line)};
  for (const auto& [key, value] : values) request.values[key] = value;
  return request;
}

Scenario resolved(const Values& values) { return resolve(asking(values), catalog()); }

std::string message_of(const Values& values) {
  try {
    resolved(values);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const Assumption* assumed(const Scenario& scenario, const std::string& field) {
  for (const Assumption& assumption : scenario.assumptions) {
    if (assumption.field == field) return &assumption;
  }
  return nullptr;
}

TEST(Resolve, FillsInEveryDefaultAndSaysSo) {
  const Scenario scenario = resolved({});
  EXPECT_EQ(scenario.framework.name, "nemo");
  EXPECT_EQ(scenario.precision, Precision::bf16);
  EXPECT_EQ(scenario.strategy.seq_len, 4096);
  EXPECT_EQ(scenario.strategy.dp, 16);
  EXPECT_EQ(scenario.strategy.global_batch, 1024);
  EXPECT_EQ(scenario.cluster.gpus_per_node, 8);
  for (const char* field : {"node", "fabric", "gpus-per-node", "precision", "framework",
                            "attention", "price", "seq-len", "tp", "pp", "cp", "vpp", "dp", "zero",
                            "recompute", "micro-batch", "global-batch", "convention"}) {
    ASSERT_NE(assumed(scenario, field), nullptr) << field;
    EXPECT_FALSE(assumed(scenario, field)->reason.empty()) << field;
  }
}

TEST(Resolve, WhatIsGivenIsNotAssumed) {
  const Scenario scenario = resolved({{"tp", "2"}, {"pp", "2"}, {"micro-batch", "4"}});
  EXPECT_EQ(assumed(scenario, "tp"), nullptr);
  EXPECT_EQ(assumed(scenario, "micro-batch"), nullptr);
  EXPECT_EQ(scenario.strategy.dp, 4);
  EXPECT_EQ(scenario.strategy.micro_batch, 4);
}

TEST(Resolve, GpusFollowFromTheDivision) {
  Request request = asking({{"tp", "4"}, {"dp", "2"}});
  request.values.erase("gpus");
  EXPECT_EQ(resolve(request, catalog()).cluster.gpus, 8);
}

TEST(Resolve, AutoPrecisionIsTheBestForTraining) {
  EXPECT_EQ(resolved({{"gpu", "v100-sxm2-32gb"}, {"gpus", "8"}}).precision, Precision::fp16);
}

TEST(Resolve, QuantitiesAsPeopleWriteThem) {
  const Scenario scenario = resolved({{"tokens", "15T"},
                                      {"power-cap", "500 W"},
                                      {"price", "25e-1"},
                                      {"oversubscription", "2:1"},
                                      {"recompute", "full:8"}});
  EXPECT_DOUBLE_EQ(scenario.tokens->value(), 15e12);
  EXPECT_DOUBLE_EQ(scenario.power_cap->value(), 500);
  EXPECT_DOUBLE_EQ(scenario.gpu_price->value() * 3600, 2.5);
  EXPECT_DOUBLE_EQ(scenario.cluster.oversubscription, 2);
  EXPECT_EQ(scenario.strategy.recompute, Recompute::full);
  EXPECT_DOUBLE_EQ(scenario.strategy.recompute_share, 0.25);
}

TEST(Resolve, EmbeddingAndHeadTakePlacesOfAnInterleavedPipeline) {
  const auto chunks = [](const char* pp) {
    return resolved({{"model", "llama-3.1-405b"}, {"gpus", "128"}, {"tp", "8"}, {"pp", pp}})
        .strategy.vpp;
  };
  EXPECT_EQ(chunks("16"), 4);  // 128 places: 8 a stage, 2 a chunk
  EXPECT_EQ(chunks("2"), 32);  // and again
}

TEST(Resolve, AConfigurationFileIsNamedAfterItself) {
  const std::string folder = testing::TempDir() + "tiny";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << catalog().model_card("gpt2").config.dump();
  const Scenario scenario = resolved({{"model", folder + "/config.json"}, {"seq-len", "512"}});
  EXPECT_EQ(scenario.model.name, "tiny");
  EXPECT_EQ(scenario.model.layers, 12);
}

// --- the words of errors: field, value, rule, mend ----------------------------------------------
TEST(ResolveErrors, Numbers) {
  EXPECT_EQ(message_of({{"tp", "two"}}),
            "--tp: \"two\" is not a whole number; give one from 1 to 1048576");
  EXPECT_EQ(message_of({{"tp", "0"}}),
            "--tp: \"0\" is out of range; give a whole number from 1 to 1048576");
  EXPECT_THAT(message_of({{"gpus", "99999999999999999999"}}), HasSubstr("out of range"));
  EXPECT_THAT(message_of({{"tp", "1.5"}}), HasSubstr("is not a whole number"));
  EXPECT_THAT(message_of({{"tp", ""}}), HasSubstr("is not a whole number"));
  EXPECT_THAT(message_of({{"tp", "1048576"}, {"pp", "1048576"}}), HasSubstr("ranks in all"));
}

TEST(ResolveErrors, Names) {
  EXPECT_THAT(message_of({{"gpu", "h100-sxn"}}),
              AllOf(StartsWith("--gpu: "), HasSubstr("did you mean \"h100-sxm\"?")));
  EXPECT_THAT(message_of({{"model", "llama-3.1-8"}}), StartsWith("--model: "));
  EXPECT_EQ(message_of({{"precision", "bf15"}}),
            "--precision: \"bf15\" is not one of fp32, tf32, bf16, fp16, fp8; did you mean "
            "\"bf16\"?");
  EXPECT_THAT(message_of({{"schedule", "zb"}}),
              HasSubstr("is not one of gpipe, 1f1b, interleaved"));
}

TEST(ResolveErrors, UnknownKeys) {
  EXPECT_EQ(message_of({{"micro-batches", "1"}}),
            "command line: unknown key \"micro-batches\"; did you mean \"micro-batch\"?");
}

TEST(ResolveErrors, WhatIsMissing) {
  Request request = asking({});
  request.values.erase("model");
  EXPECT_THROW(resolve(request, catalog()), InputError);
  request = asking({});
  request.values.erase("gpu");
  EXPECT_THROW(resolve(request, catalog()), InputError);
}

TEST(ResolveErrors, WhatIsNotModelledYet) {
  EXPECT_EQ(message_of({{"ep", "8"}}),
            "--ep: \"8\" asks for experts, and mixture of experts is not modelled yet; leave --ep "
            "out");
  EXPECT_EQ(message_of({{"ep", "1"}}), "no error");
  EXPECT_THAT(message_of({{"optimizer", "muon"}}), HasSubstr("is not modelled yet"));
}

TEST(ResolveErrors, PowerCapsStayWithinTheCard) {
  EXPECT_EQ(message_of({{"power-cap", "900"}}),
            "--power-cap: \"900\" cannot be set on h100-sxm; its limits are 200 W to 700 W");
  EXPECT_THAT(message_of({{"power-cap", "100"}}), HasSubstr("200 W to 700 W"));
  EXPECT_THAT(message_of({{"power-cap", "500 GB"}}), StartsWith("--power-cap: "));
}

TEST(ResolveErrors, PricesStayFinite) {
  EXPECT_EQ(message_of({{"price", "1e300"}}),
            "--price: \"1e300\" is out of range; give at most 1000000 USD/h");
  EXPECT_THAT(message_of({{"price", "-1"}}), HasSubstr("must not be negative"));
  EXPECT_THAT(message_of({{"price", "nan"}}), HasSubstr("out of range"));
}

TEST(ResolveErrors, Precisions) {
  EXPECT_THAT(message_of({{"gpu", "v100-sxm2-32gb"}, {"gpus", "8"}, {"precision", "fp8"}}),
              AllOf(StartsWith("--precision: "), HasSubstr("fp16")));
}

TEST(ResolveErrors, Tokens) {
  EXPECT_EQ(message_of({{"tokens", "lots"}}),
            "--tokens: \"lots\" is not a number of tokens; give one such as 300B, 15T or 2e12");
  EXPECT_THAT(message_of({{"tokens", "-1B"}}), HasSubstr("is not a number of tokens"));
  EXPECT_THAT(message_of({{"tokens", "nan"}}), HasSubstr("is not a number of tokens"));
}

TEST(ResolveErrors, LearnedPositionsEnd) {
  EXPECT_THAT(message_of({{"model", "gpt2"}, {"seq-len", "2048"}}),
              HasSubstr("is longer than the 1024 learned positions"));
}

}  // namespace
}  // namespace orrery

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
  for (const char* field : {"node",        "fabric",       "gpus-per-node",
                            "precision",   "framework",    "attention",
                            "price",       "seq-len",      "tp",
                            "pp",          "cp",           "vpp",
                            "dp",          "zero",         "recompute",
                            "micro-batch", "global-batch", "convention",
                            "task",        "optimizer"}) {
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

TEST(Resolve, LayersOfStagesThatAreNotEqual) {
  using testing::ElementsAre;
  const Scenario split = resolved({{"pp", "2"}, {"split", "7,8,8,9"}, {"vpp", "2"}});
  EXPECT_THAT(split.strategy.stage_layers, ElementsAre(7, 8, 8, 9));
  EXPECT_FALSE(split.strategy.equal_chunks);
  EXPECT_THAT(resolved({{"pp", "4"}, {"first-stage-layers", "5"}, {"last-stage-layers", "7"}})
                  .strategy.stage_layers,
              ElementsAre(5, 10, 10, 7));
  EXPECT_EQ(message_of({{"pp", "2"}, {"split", "16,17"}}),
            "--split: \"16,17\" has 33 layers, and llama-3.1-8b has 32; make them add up");
  EXPECT_THAT(message_of({{"pp", "4"}, {"split", "16,16"}}), HasSubstr("2 chunks of layers"));
  EXPECT_THAT(message_of({{"pp", "2"}, {"split", "16,,16"}}), HasSubstr("has an empty item"));
  EXPECT_THAT(message_of({{"pp", "4"}, {"first-stage-layers", "6"}}),
              HasSubstr("leaves 26 layers for 3 equal stages"));
  EXPECT_THAT(message_of({{"first-stage-layers", "6"}}), HasSubstr("give --pp"));
}

TEST(Resolve, SchedulesAndWhatTheyTake) {
  EXPECT_EQ(resolved({{"pp", "4"}, {"schedule", "zb-v"}}).strategy.vpp, 2);
  EXPECT_EQ(resolved({{"pp", "4"}, {"schedule", "zb-h1"}}).strategy.schedule,
            Schedule::zero_bubble_h1);
  EXPECT_EQ(resolved({{"pp", "4"}, {"schedule", "dualpipe"}}).strategy.schedule,
            Schedule::dual_pipe);
}

TEST(Resolve, AnInterleavedScheduleHasChunks) {
  const Scenario s =
      resolved({{"framework", "torchtitan"}, {"pp", "4"}, {"schedule", "interleaved"}});
  EXPECT_EQ(s.strategy.vpp, 2);
  EXPECT_NE(assumed(s, "vpp"), nullptr);
}

TEST(Resolve, KindsOfContextParallelism) {
  EXPECT_EQ(resolved({{"cp", "2"}}).strategy.context_kind, ContextKind::all_gather);
  EXPECT_NE(assumed(resolved({{"cp", "2"}}), "cp-kind"), nullptr);
  EXPECT_EQ(resolved({{"cp", "2"}, {"cp-kind", "ring"}}).strategy.context_kind, ContextKind::ring);
}

TEST(Resolve, AdaptersFreezeTheRest) {
  const Scenario lora = resolved({{"task", "lora"}});
  EXPECT_TRUE(lora.job.freezes_stack);
  EXPECT_EQ(lora.job.lora_rank, 16);
  EXPECT_NE(assumed(lora, "lora-rank"), nullptr);
  EXPECT_NE(assumed(lora, "lora-targets"), nullptr);
  const GraphOptions options = graph_options(
      resolved({{"task", "qlora"}, {"lora-rank", "8"}, {"lora-targets", "attention"}}));
  EXPECT_TRUE(options.frozen && options.quantised && options.adapt_attention);
  EXPECT_FALSE(options.adapt_feed_forward);
  EXPECT_EQ(options.adapter_rank, 8);
  EXPECT_TRUE(
      graph_options(resolved({{"task", "lora"}, {"train-embeddings", "true"}})).train_embeddings);
  EXPECT_FALSE(resolved({{"task", "sft"}}).job.freezes_stack);
}

TEST(Resolve, OptimizersKeepTheMasterCopyOfTheFramework) {
  const auto bytes = [](const char* framework, const char* optimizer) {
    const Scenario s = resolved({{"framework", framework}, {"optimizer", optimizer}});
    return recipe_of(s.framework, s.strategy, s.job).optimizer_bytes;
  };
  EXPECT_DOUBLE_EQ(bytes("megatron", "adam"), 12);        // fp32 master copy and two moments
  EXPECT_DOUBLE_EQ(bytes("megatron", "adam-bf16"), 8);    // DeepSeek-V3
  EXPECT_DOUBLE_EQ(bytes("torchtitan", "adafactor"), 0);  // weights are fp32 themselves
  EXPECT_DOUBLE_EQ(bytes("torchtitan", "sgd"), 4);
  EXPECT_NEAR(bytes("torchtitan", "adam8bit"), 2, 0.05);
  EXPECT_DOUBLE_EQ(bytes("megatron", "muon"), 8);
}

TEST(Resolve, OffloadAndWhatItNeeds) {
  const Scenario s = resolved({{"offload", "parameters"}, {"offload-to", "nvme"}});
  EXPECT_EQ(s.strategy.offload, Offload::parameters);
  EXPECT_TRUE(s.strategy.offload_to_nvme);
  EXPECT_EQ(s.strategy.zero, Zero::weights);
  EXPECT_NE(assumed(s, "zero"), nullptr);
  EXPECT_THAT(message_of({{"offload", "parameters"}, {"zero", "2"}}), HasSubstr("give --zero 3"));
  EXPECT_THAT(message_of({{"offload-to", "nvme"}}), HasSubstr("nothing is offloaded"));
  EXPECT_THAT(message_of({{"offload", "activations"}, {"offload-to", "nvme"}}),
              HasSubstr("too slow for activations"));
}

TEST(Resolve, WhatASequenceHolds) {
  const Scenario s = resolved({{"packed", "2.5"}, {"padding", "20%"}});
  EXPECT_DOUBLE_EQ(graph_options(s).documents, 2.5);
  EXPECT_DOUBLE_EQ(s.job.padding, 0.2);
  EXPECT_DOUBLE_EQ(resolved({{"padding", "0.2"}}).job.padding, 0.2);
}

TEST(Resolve, CopiesInFp8) {
  const Scenario s = resolved({{"precision", "fp8"}, {"fp8-copies", "transposed"}});
  EXPECT_DOUBLE_EQ(recipe_of(s.framework, s.strategy, s.job).weight_copies, 2);
  EXPECT_THAT(message_of({{"fp8-copies", "weights"}}), HasSubstr("add --precision fp8"));
}

TEST(Resolve, ABatchThatGrows) {
  const Scenario s =
      resolved({{"batch-ramp", "128:64:10B"}, {"tokens", "300B"}, {"global-batch", "1024"}});
  ASSERT_TRUE(s.job.ramp.has_value());
  EXPECT_EQ(s.job.ramp->start, 128);
  EXPECT_EQ(s.job.ramp->step, 64);
  EXPECT_DOUBLE_EQ(s.job.ramp->tokens.value(), 10e9);
}

// --- models with experts and towers -------------------------------------------------------------
Request with_model(const Architecture& model, const Values& values) {
  Request request = asking(values);
  request.values.erase("model");
  request.architecture = model;
  return request;
}

Architecture with_experts() {
  Architecture model = catalog().model("llama-3.1-8b");
  model.name = "mixture";
  model.experts.count = 8;
  model.experts.top_k = 2;
  model.experts.width = model.ffn;
  return model;
}

Architecture with_tower() {
  Architecture model = catalog().model("llama-3.1-8b");
  model.name = "seeing";
  model.towers.resize(1);
  model.towers[0].name = "vision";
  model.towers[0].projector.push_back({1024, 4096, false});
  return model;
}

std::string message_of(const Architecture& model, const Values& values) {
  try {
    resolve(with_model(model, values), catalog());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Resolve, ExpertsAndTheirDivision) {
  const Scenario s =
      resolve(with_model(with_experts(), {{"ep", "8"}, {"expert-load", "1.3"}}), catalog());
  EXPECT_EQ(s.strategy.ep, 8);
  EXPECT_EQ(s.strategy.etp, 1);
  EXPECT_NE(assumed(s, "etp"), nullptr);
  EXPECT_DOUBLE_EQ(graph_options(s).expert_load, 1.3);
  EXPECT_EQ(s.strategy.dp, 16);  // ep lies within it
  EXPECT_DOUBLE_EQ(
      graph_options(resolve(with_model(with_experts(), {{"capacity", "0.5"}}), catalog()))
          .expert_load,
      0.5);
  EXPECT_THAT(message_of(with_experts(), {{"capacity", "1"}, {"expert-load", "1"}}),
              HasSubstr("give one of them"));
}

TEST(Resolve, FrozenParts) {
  const auto options = [](const Values& values) {
    return graph_options(resolve(with_model(with_tower(), values), catalog()));
  };
  const GraphOptions tower = options({{"freeze", "vision"}, {"images", "4"}});
  EXPECT_TRUE(tower.frozen_towers);
  EXPECT_FALSE(tower.frozen || tower.frozen_projector);
  EXPECT_DOUBLE_EQ(tower.images, 4);
  const GraphOptions projector = options({{"freeze", "vision,language"}});
  EXPECT_TRUE(projector.frozen && projector.frozen_towers);
  EXPECT_FALSE(projector.frozen_projector);
  const GraphOptions lora = options({{"task", "lora"}});
  EXPECT_TRUE(lora.frozen && lora.frozen_towers && lora.frozen_projector);
  EXPECT_FALSE(options({{"task", "lora"}, {"freeze", "vision"}}).frozen_projector);
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
              HasSubstr("is not one of gpipe, 1f1b, interleaved, zb-h1, zb-v, dualpipe"));
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

TEST(ResolveErrors, WhatContradicts) {
  EXPECT_EQ(message_of({{"ep", "8"}}),
            "--ep: \"8\" divides experts, and llama-3.1-8b has none; leave --ep out");
  EXPECT_EQ(message_of({{"ep", "1"}}), "no error");
  EXPECT_EQ(message_of({{"task", "sft"}, {"lora-rank", "8"}}),
            "--lora-rank: \"8\" is of adapters, and --task sft has none: all weights are trained; "
            "add --task lora, or leave it out");
  EXPECT_THAT(message_of({{"lora-targets", "all"}}), HasSubstr("--task pretrain has none"));
  EXPECT_THAT(message_of({{"task", "qlora"}, {"precision", "fp8"}}), HasSubstr("4-bit"));
  EXPECT_THAT(message_of({{"train-embeddings", "true"}}), HasSubstr("trained with the rest"));
  EXPECT_THAT(message_of({{"freeze", "language"}}), HasSubstr("leaves nothing to train"));
  EXPECT_EQ(message_of({{"freeze", "vision"}}),
            "--freeze: \"vision\" names \"vision\", which is no part of llama-3.1-8b; its parts "
            "are language");
  EXPECT_THAT(message_of(with_tower(), {{"freeze", "vision,projector,language"}}),
              HasSubstr("leaves nothing to train"));
  EXPECT_THAT(message_of({{"images", "2"}}), HasSubstr("llama-3.1-8b has none"));
  Architecture seeing = with_tower();
  seeing.towers[0].tokens_out = 576;
  EXPECT_EQ(message_of(seeing, {{"images", "7"}}), "no error");
  EXPECT_THAT(message_of(seeing, {{"images", "8"}}), HasSubstr("8 images bring 4608 tokens"));
  EXPECT_THAT(message_of({{"expert-load", "2"}}), HasSubstr("llama-3.1-8b has none"));
  EXPECT_THAT(message_of({{"capacity", "1.25"}}), HasSubstr("llama-3.1-8b has none"));
}

TEST(ResolveErrors, Ramps) {
  EXPECT_THAT(message_of({{"batch-ramp", "128"}, {"tokens", "1T"}}),
              HasSubstr("is not START:STEP:TOKENS"));
  EXPECT_THAT(message_of({{"batch-ramp", "128:64:lots"}, {"tokens", "1T"}}),
              HasSubstr("does not end with a number of tokens"));
  EXPECT_THAT(message_of({{"batch-ramp", "100:64:1B"}, {"tokens", "1T"}}),
              HasSubstr("does not reach the global batch of 1024 in whole steps"));
  EXPECT_THAT(message_of({{"batch-ramp", "512:512:1B"}}), HasSubstr("add --tokens"));
}

TEST(ResolveErrors, SharesAndNumbers) {
  EXPECT_EQ(message_of({{"padding", "20"}}),
            "--padding: \"20\" is not a share of at least 0 and below 1; give one such as 20% or "
            "0.2");
  EXPECT_THAT(message_of({{"padding", "nan"}}), HasSubstr("is not a share"));
  EXPECT_THAT(message_of({{"packed", "0"}}), HasSubstr("give a number from 1 to 4096"));
  EXPECT_THAT(message_of({{"packed", "nan"}}), HasSubstr("out of range"));
  EXPECT_THAT(message_of({{"packed", "1e999"}}), HasSubstr("out of range"));
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

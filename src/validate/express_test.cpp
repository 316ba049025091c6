#include "validate/express.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/count.h"

namespace orrery {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Pair;
using ::testing::StartsWith;

// A dense row that prints everything.
Measurement complete() {
  Measurement row;
  row.id = "x-1";
  row.gpu = "H100-SXM-80GB";
  row.gpus = 32;
  row.gpus_per_node = 8;
  row.interconnect = "NVLink; 8x400 Gb/s InfiniBand";
  row.framework = "NeMo/Megatron-Core";
  row.model = "llama3-8b";
  row.layers = 32;
  row.hidden = 4096;
  row.heads = 32;
  row.kv_heads = 8;
  row.head_dim = 128;
  row.ffn_hidden = 14336;
  row.mlp = "swiglu";
  row.vocab = 128256;
  row.seq_len = 8192;
  row.global_batch_seqs = 128;
  row.micro_batch = 1;
  row.precision = "bf16";
  row.tp = 2;
  row.sp = true;
  row.pp = 2;
  row.vpp = 4;
  row.dp = 4;
  row.cp = 2;
  row.zero_stage = "1 (distributed optimizer)";
  row.recompute = "none";
  row.tokens_per_s_per_gpu = 10000;
  return row;
}

Expressed expressed(const Measurement& row) {
  auto result = express(row);
  if (const Skip* skip = std::get_if<Skip>(&result)) ADD_FAILURE() << skip->reason;
  return std::holds_alternative<Expressed>(result) ? std::get<Expressed>(result) : Expressed{};
}
std::string reason(const Measurement& row) {
  auto result = express(row);
  const Skip* skip = std::get_if<Skip>(&result);
  return skip ? skip->reason : "expressed";
}
std::string flag(const Expressed& question, const std::string& name) {
  const auto found = question.request.values.find(name);
  return found == question.request.values.end() ? "" : found->second;
}

TEST(Express, ARowThatPrintsEverythingNeedsNoDefault) {
  const Expressed question = expressed(complete());
  EXPECT_THAT(question.defaults, ::testing::IsEmpty());
  EXPECT_EQ(question.gpu, "h100-sxm");
  EXPECT_EQ(question.framework, "nemo");
  EXPECT_EQ(question.tokens_per_s_per_gpu, 10000);
  EXPECT_THAT(
      question.request.values,
      ::testing::ElementsAre(
          Pair("cp", "2"), Pair("dp", "4"), Pair("fabric", "ndr400-rail"),
          Pair("framework", "nemo"), Pair("global-batch", "128"), Pair("gpu", "h100-sxm"),
          Pair("gpus", "32"), Pair("gpus-per-node", "8"), Pair("micro-batch", "1"), Pair("pp", "2"),
          Pair("precision", "bf16"), Pair("recompute", "none"), Pair("seq-len", "8192"),
          Pair("sequence-parallel", "true"), Pair("tp", "2"), Pair("vpp", "4"), Pair("zero", "1")));
  const Architecture& model = *question.request.architecture;
  EXPECT_EQ(model.ffn, 14336);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.norm, Norm::rms_norm);
  EXPECT_FALSE(model.tied_embeddings);
}

TEST(Express, TheIdDecidesNothing) {
  Measurement row = complete();
  row.recompute.clear();
  const auto first = expressed(row).request.values;
  row.id = "something-else-77";
  EXPECT_EQ(expressed(row).request.values, first);
}

TEST(Express, WhatCannotBeAskedIsLeftOutInWords) {
  const auto with = [](auto change) {
    Measurement row = complete();
    change(row);
    return reason(row);
  };
  EXPECT_EQ(with([](auto& r) { r.task = "dpo"; }), "task dpo is not known");
  EXPECT_EQ(with([](auto& r) { r.gpu = ""; }), "GPU not stated");
  EXPECT_EQ(with([](auto& r) { r.gpus.reset(); }), "number of GPUs not stated");
  EXPECT_EQ(with([](auto& r) { r.experts = 8; }), "experts a token not stated");
  EXPECT_EQ(with([](auto& r) { r.model = "bert-large"; }), "not a decoder: bert-large");
  EXPECT_THAT(with([](auto& r) { r.model = "mamba-2.8b"; }), StartsWith("a hybrid"));
  EXPECT_EQ(with([](auto& r) { r.hidden.reset(); }), "dimensions not stated");
  EXPECT_EQ(with([](auto& r) { r.layers.reset(); }), "dimensions not stated");
  EXPECT_EQ(with([](auto& r) { r.mlp = "moe"; }), "the feed-forward kind moe is not known");
  EXPECT_EQ(with([](auto& r) { r.seq_len.reset(); }), "sequence length not stated");
  EXPECT_EQ(with([](auto& r) { r.global_batch_seqs.reset(); }), "global batch not stated");
  EXPECT_EQ(with([](auto& r) { r.precision = ""; }), "precision not stated");
  EXPECT_EQ(with([](auto& r) { r.tp.reset(); }), "layout not stated (tp, pp)");
  EXPECT_EQ(with([](auto& r) { r.dp = 8; }), "tp 2 x pp 2 x cp 2 x dp 8 is not 32 GPUs");
  EXPECT_EQ(with([](auto& r) { r.tp = 64; }), "tp 64 x pp 2 x cp 2 x dp 4 is not 32 GPUs");
  EXPECT_EQ(with([](auto& r) { r.global_batch_seqs = 130; }),
            "global batch 130 does not divide into dp 4 x micro-batch 1");
  EXPECT_EQ(with([](auto& r) { r.other = "adapter v2"; }),
            "adapters of prompts (LLaMA-Adapter) are not modelled");
  EXPECT_EQ(with([](auto& r) { r.other = "offload optimizer False, params False"; }), "expressed");
}

TEST(Express, WhatGoesToTheHostIsSaidByKeyword) {
  Measurement row = complete();
  const auto offload = [&](const std::string& other) {
    row.other = other;
    return flag(expressed(row), "offload");
  };
  EXPECT_EQ(offload("offload optimizer True, params False"), "optimizer");
  EXPECT_EQ(offload("offload optimizer True, params True"), "parameters");
  EXPECT_EQ(offload("offload optimizer False, params False"), "");
  EXPECT_EQ(offload("CPU offload True"), "parameters");
  EXPECT_EQ(offload("CPU offload False"), "");
  EXPECT_EQ(offload("no offload"), "");
}

// The published configuration of DeepSeek-V3: 61 layers, the first 3 dense, 256 experts of which 8,
// one shared.
TEST(Express, ExpertsAndLatentAttentionComeFromColumnsAndKeywords) {
  Measurement row = complete();
  row.model = "deepseek-v3";
  row.layers = 61;
  row.hidden = 7168;
  row.heads = 128;
  row.kv_heads.reset();
  row.head_dim.reset();
  row.ffn_hidden = 18432;
  row.vocab = 129280;
  row.experts = 256;
  row.topk = 8;
  row.moe_ffn_hidden = 2048;
  row.gpus = 512;
  row.tp = 2;
  row.pp = 8;
  row.vpp = 1;
  row.cp = 1;
  row.dp = 32;
  row.ep = 64;
  row.other =
      "latent q 1536 kv 512 nope 128 rope 64 value 128; dense layers 3; shared experts 1; token "
      "drop";
  const Expressed question = expressed(row);
  EXPECT_EQ(flag(question, "ep"), "64");
  EXPECT_EQ(flag(question, "capacity"), "1");
  EXPECT_EQ(flag(question, "split"), "8,8,8,8,8,8,8,5");  // Megatron Bridge's recipe
  // What Hugging Face's checkpoint counts without its multi-token prediction module; the row has no
  // norms of latents and no corrections of the router.
  EXPECT_NEAR(static_cast<double>(parameters(*question.request.architecture).total()), 671.0264e9,
              1e-6 * 671.0264e9);
}

TEST(Express, ExpertsInEverySecondLayer) {
  Measurement row = complete();
  row.layers = 48;
  row.experts = 128;
  row.topk = 1;
  row.moe_ffn_hidden = 8192;
  row.ep = 8;
  row.other = "experts every 2; shared experts 1";
  const Architecture model = *expressed(row).request.architecture;
  EXPECT_EQ(expert_layers(model), 24);
  EXPECT_FALSE(layer_runs(model).front().kind.experts);
  EXPECT_TRUE(layer_runs(model).back().kind.experts);
  EXPECT_EQ(model.experts.shared_width, 8192);
}

TEST(Express, FineTuningTakesTheAdaptersOfItsFramework) {
  Measurement row = complete();
  row.task = "lora";
  const Expressed nemo = expressed(row);
  EXPECT_EQ(flag(nemo, "task"), "lora");
  EXPECT_EQ(flag(nemo, "lora-rank"), "16");
  EXPECT_EQ(flag(nemo, "lora-targets"), "attention");
  EXPECT_EQ(flag(nemo, "packed"), "3.3");
  row.source = "mlcommons/training_results_v4.0@0:NVIDIA";  // whole sequences of 8192
  EXPECT_EQ(flag(expressed(row), "packed"), "");
  row.source.clear();
  row.framework = "HF Trainer";
  row.tp = row.pp = row.cp = row.vpp = 1;
  row.dp = 32;
  row.other = "embeddings trained";
  const Expressed hf = expressed(row);
  EXPECT_EQ(flag(hf, "lora-rank"), "64");
  EXPECT_EQ(flag(hf, "lora-targets"), "all");
  EXPECT_EQ(flag(hf, "train-embeddings"), "true");
  row.other = "nf4";  // what a table calls LoRA, of 4-bit weights
  EXPECT_EQ(flag(expressed(row), "task"), "qlora");
}

// Layouts that NVIDIA's configuration files print: config_DGXH100_1x8x4xtp4pp1cp1,
// config_DGXH200_1x8x2xtp2pp1cp1, config_DGXH100_8x8x1xtp4pp1cp2.
TEST(Express, SubmissionsOfLoraWithoutALayoutAreDividedAsTheOthers) {
  Measurement row = complete();
  row.source = "mlcommons/training_results_v4.1@0:Someone";
  row.framework = "PyTorch";
  row.task = "lora";
  row.global_batch_seqs = 8;
  row.tp.reset();
  row.pp.reset();
  row.cp.reset();
  row.dp.reset();
  row.vpp.reset();
  row.recompute.clear();
  const auto layout = [&](const std::string& gpu, std::int64_t gpus) {
    row.gpu = gpu;
    row.gpus = gpus;
    const Expressed question = expressed(row);
    return flag(question, "tp") + " " + flag(question, "cp") + " " + flag(question, "dp");
  };
  EXPECT_EQ(layout("H100-SXM-80GB", 8), "4 1 2");
  EXPECT_EQ(layout("H200-SXM-141GB", 8), "2 1 4");
  EXPECT_EQ(layout("H100-SXM-80GB", 64), "4 2 8");
  EXPECT_EQ(expressed(row).framework, "nemo");
  EXPECT_EQ(flag(expressed(row), "recompute"), "full:9");  // three tenths of 32 layers
}

TEST(Express, SamplesOfManyLengthsTellMemoryNotSpeed) {
  Measurement row = complete();
  row.framework = "LitGPT";
  row.task = "lora";
  row.tp = row.pp = row.cp = row.vpp = 1;
  row.dp = 32;
  row.seq_len.reset();
  row.peak_mem_gib = 20;
  row.other = "up to 1304 tokens";
  const Expressed question = expressed(row);
  EXPECT_EQ(flag(question, "seq-len"), "1304");
  EXPECT_EQ(question.seq_len, 1304);
  EXPECT_EQ(question.tokens_per_s_per_gpu, std::nullopt);
  EXPECT_EQ(question.without_throughput, "samples of many lengths");
}

TEST(Express, ABareSizeIsShapedAsGpt3) {
  Measurement row = complete();
  row.params_b = 52;
  row.hidden.reset();
  row.layers.reset();
  row.heads.reset();
  row.kv_heads.reset();
  row.head_dim.reset();
  row.ffn_hidden.reset();
  row.mlp = "gelu";
  const Architecture model = *expressed(row).request.architecture;
  EXPECT_EQ(model.hidden, 8192);
  EXPECT_EQ(model.layers, 64);
  EXPECT_EQ(model.heads, 64);
}

TEST(Express, BlanksOfNeMo) {
  Measurement row = complete();
  row.interconnect = row.zero_stage = row.recompute = "";
  row.dp.reset();
  row.sp.reset();
  row.vpp.reset();
  const Expressed question = expressed(row);
  EXPECT_EQ(flag(question, "dp"), "4");
  EXPECT_THAT(
      question.defaults,
      ::testing::ElementsAre(StartsWith("fabric = ndr400-rail"), StartsWith("zero = 1"),
                             StartsWith("recompute = none"), StartsWith("sequence-parallel = true"),
                             StartsWith("vpp = 1 ")));
}

TEST(Express, ChunksThatArePrintedNowhere) {
  Measurement row = complete();
  row.layers = 96;
  row.pp = 8;
  row.cp = 1;
  row.tp = 2;
  row.dp = 2;
  row.vpp.reset();
  const auto chunks = [&](const std::string& framework, const std::string& notes) {
    row.framework = framework;
    row.other = notes;
    return flag(expressed(row), "vpp");
  };
  EXPECT_EQ(chunks("NeMo/Megatron-Core", ""), "12");
  EXPECT_EQ(chunks("NVIDIA NeMo Framework Release 23.09", ""), "6");
  EXPECT_EQ(chunks("Megatron-Core r0.8.0", "micro-batch/VPP/recompute not printed"), "6");
  EXPECT_EQ(chunks("Megatron-Core r0.8.0", "VPP not printed; tp-comm-overlap"), "6");
  EXPECT_EQ(chunks("Meta internal (FSDP+TP+PP+CP)", ""), "6");
  EXPECT_EQ(chunks("Megatron-LM (TE 2.11)", "4 micro-batches per rank"), "1");
  EXPECT_EQ(chunks("Megatron-DeepSpeed", ""), "1");
  row.global_batch_seqs = 2 * 12;  // 12 micro-batches do not make whole rounds of 8 stages
  EXPECT_EQ(chunks("NeMo/Megatron-Core", ""), "1");
}

TEST(Express, TheBloomSweepLeavesLayersAndHeadsOpen) {
  Measurement row = complete();
  row.gpu = "A100-SXM-80GB";
  row.gpus = 360;
  row.interconnect = "NVLink; 4x Omni-Path 100 Gb/s per node (Jean Zay)";
  row.framework = "Megatron-DeepSpeed";
  row.model = "gpt-205b";
  row.mlp = "gelu";
  row.params_b = 205;
  row.layers.reset();
  row.heads.reset();
  row.kv_heads.reset();
  row.head_dim.reset();
  row.hidden = 14400;
  row.ffn_hidden = 57600;
  row.global_batch_seqs = 2045;
  row.tp = 8;
  row.pp = 9;
  row.dp = 5;
  row.cp.reset();
  row.vpp.reset();
  const Expressed question = expressed(row);
  const Architecture& model = *question.request.architecture;
  EXPECT_EQ(model.layers, 81);  // 205e9 / (12 x 14400^2) = 82.4, and 9 stages
  EXPECT_EQ(model.heads, 120);
  EXPECT_EQ(model.head_dim, 120);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.position_rows, 8192);
  EXPECT_EQ(flag(question, "fabric"), "omnipath-4x100");
  EXPECT_EQ(flag(question, "node"), "jean-zay-a100");
  EXPECT_THAT(question.defaults,
              IsSupersetOf({"layers = 81 (params_b / 12 h^2, a multiple of pp)",
                            "heads = 120 (about 128 wide)", "vpp = 1 (not interleaved)"}));
}

TEST(Express, InternEvoShardsOverOneNodeAndUsesItsTokenizer) {
  Measurement row = complete();
  row.framework = "InternEvo";
  row.interconnect = "NVLink; 4x100 Gb/s RoCE per node";
  row.gpu = "A100-SXM-80GB";
  row.vocab.reset();
  row.ffn_hidden.reset();
  row.tp = row.pp = row.cp = row.vpp = 1;
  row.dp = 32;
  row.zero_stage = "1 (optimizer sharded over 8 GPUs)";
  const Expressed question = expressed(row);
  EXPECT_EQ(question.request.architecture->vocab, 103168);
  EXPECT_EQ(question.request.architecture->ffn, 11008);
  EXPECT_EQ(flag(question, "shard-ranks"), "8");
  EXPECT_EQ(flag(question, "fabric"), "roce-4x100");
}

TEST(Express, TheFirstMegatronRunsAWholeReplicaAtOnce) {
  Measurement row = complete();
  row.framework = "Megatron-LM (2020)";
  row.gpu = "V100-SXM3-32GB (DGX-2)";
  row.precision = "fp16";
  row.gpus = 8;
  row.gpus_per_node = 16;
  row.tp = 8;
  row.pp = row.dp = 1;
  row.cp.reset();
  row.sp.reset();
  row.vpp.reset();
  row.global_batch_seqs = 8;
  row.micro_batch.reset();
  row.zero_stage.clear();
  row.recompute = "full";
  const Expressed question = expressed(row);
  EXPECT_EQ(question.framework, "megatron-2021");
  EXPECT_EQ(flag(question, "micro-batch"), "8");
  EXPECT_EQ(flag(question, "zero"), "0");
  EXPECT_EQ(flag(question, "sequence-parallel"), "false");
  EXPECT_EQ(flag(question, "gpus-per-node"), "8");
  EXPECT_EQ(flag(question, "fabric"), "");
}

TEST(Express, AMegatronOfHalfPrecisionIsAnEarlyOne) {
  Measurement row = complete();
  row.framework = "Megatron-LM";
  EXPECT_EQ(expressed(row).framework, "megatron");
  row.precision = "fp16";
  EXPECT_EQ(expressed(row).framework, "megatron-2021");
}

TEST(Express, ZeRO3OfHalfPrecisionIsAnEarlyDeepSpeed) {
  Measurement row = complete();
  row.framework = "Megatron + DeepSpeed ZeRO";
  row.precision = "fp16";
  row.zero_stage = "1";
  EXPECT_EQ(expressed(row).framework, "megatron-deepspeed");
  row.zero_stage = "3";
  EXPECT_EQ(expressed(row).framework, "deepspeed-2021");
}

TEST(Express, AMegatronThatOverlapsIsLikeNeMo) {
  Measurement row = complete();
  row.framework = "Megatron-Core r0.8.0";
  row.other = "overlap-grad-reduce, tp-comm-overlap";
  EXPECT_EQ(expressed(row).framework, "nemo");
  EXPECT_THAT(expressed(row).defaults,
              Contains("framework = nemo (overlaps tensor parallelism as NeMo does)"));
}

TEST(Express, OddStagesAreCutIntoSingleLayers) {
  Measurement row = complete();
  row.framework = "Megatron-LM";
  row.other = "scatter/gather + interleaving where PP>1";
  row.layers = 30;
  row.vpp.reset();
  EXPECT_EQ(flag(expressed(row), "vpp"), "15");
}

TEST(Express, TorchtitanNotesTheBatchOfARank) {
  Measurement row = complete();
  row.framework = "torchtitan";
  row.gpu = "H100-SXM-96GB-HBM2e-500W";
  row.layers = 126;
  row.gpus = 512;
  row.tp = 8;
  row.pp = 8;
  row.dp = 4;
  row.cp = 2;
  row.vpp.reset();
  row.micro_batch.reset();
  row.global_batch_seqs.reset();
  row.other = "Table 6; 1F1B; local batch 8 per dp rank";
  const Expressed question = expressed(row);
  EXPECT_EQ(question.gpu, "h100-sxm-96gb-500w");
  EXPECT_EQ(flag(question, "global-batch"), "32");
  EXPECT_EQ(flag(question, "micro-batch"), "1");
  EXPECT_EQ(flag(question, "vpp"), "1");
  row.other = "schedule interleaved 1F1B; local batch 32 per dp rank";
  EXPECT_EQ(flag(expressed(row), "vpp"), "2");
  EXPECT_EQ(flag(expressed(row), "micro-batch"), "2");
}

TEST(Express, ARowThatRanOutOfMemoryNeedsNoBatch) {
  Measurement row = complete();
  row.framework = "DeepSpeed ZeRO-3";
  row.outcome = Outcome::oom;
  row.tokens_per_s_per_gpu.reset();
  row.global_batch_seqs.reset();
  row.micro_batch = 4;
  const Expressed question = expressed(row);
  EXPECT_EQ(flag(question, "global-batch"), "32");  // 4 x dp 4 x pp 2
  EXPECT_EQ(question.tokens_per_s_per_gpu, std::nullopt);
  EXPECT_EQ(question.without_throughput, "global batch not stated");
}

TEST(Express, AnUnknownFrameworkIsTakenByItsLayout) {
  Measurement row = complete();
  row.framework = "veScale";
  EXPECT_EQ(expressed(row).framework, "megatron");
  row.tp = row.pp = row.cp = row.vpp = 1;
  row.dp = 32;
  row.zero_stage = "3";
  EXPECT_EQ(expressed(row).framework, "fsdp");
  row.zero_stage = "0";
  EXPECT_EQ(expressed(row).framework, "ddp");
  EXPECT_THAT(expressed(row).defaults,
              Contains("framework = ddp (veScale is laid out like this one)"));
}

}  // namespace
}  // namespace orrery

// Divisions that frameworks refused, or silently spoiled, in public: each with its report.
#include "plan/rules.h"

#include <gmock/gmock.h>

#include "catalog/catalog.h"

namespace orrery {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Catalog& catalog() {
  static const Catalog catalog = Catalog::load(default_data_dir());
  return catalog;
}

FrameworkRules rules(std::string_view framework, std::string_view version = "") {
  return catalog().rules(std::string(framework) + "-rules", version);
}

Architecture stack(std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
                   std::int64_t head_dim, std::int64_t ffn) {
  Architecture a;
  a.layers = layers, a.heads = heads, a.kv_heads = kv_heads, a.head_dim = head_dim;
  a.hidden = heads * head_dim, a.ffn = ffn, a.vocab = 32000;
  return a;
}

// 40 layers of 32 heads: divides by whatever a test does not ask about.
Architecture plain() { return stack(40, 32, 8, 128, 14336); }

Architecture of_experts(std::int64_t count, std::int64_t width) {
  Architecture a = plain();
  a.experts.count = count, a.experts.top_k = 2, a.experts.width = width;
  a.runs = {{{.name = "experts", .experts = true}, a.layers}};
  return a;
}

Strategy of(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  Strategy s;
  s.tp = tp, s.pp = pp, s.dp = dp, s.seq_len = 4096;
  s.global_batch = dp * pp * 4;
  return s;
}

std::vector<std::string> broken(const Strategy& s, const Architecture& model,
                                const FrameworkRules& rules, bool eight_bit = false) {
  return broken_rules(s,
                      {.model = model, .rules = rules, .gpus = s.ranks(), .eight_bit = eight_bit});
}

// vllm-project/vllm#11797: Qwen2.5-7B on 8 GPUs.
TEST(Rules, TwentyEightHeadsOnEightGpus) {
  const Architecture qwen = stack(28, 28, 4, 128, 18944);
  EXPECT_THAT(broken(of(8, 1, 1), qwen, rules("vllm")),
              ElementsAre(AllOf(HasSubstr("1, 2, 4, 7, 14 and 28 do"),
                                HasSubstr("of them 1, 2 and 4 with whole key-value heads"),
                                HasSubstr("tp: the nearest valid value is 4"),
                                HasSubstr("tp 4 leaves a factor of 2 to dp or pp"))));
  EXPECT_THAT(broken(of(4, 2, 1), qwen, rules("vllm")), IsEmpty());
  EXPECT_THAT(broken(of(4, 1, 2), qwen, rules("vllm")), IsEmpty());
}

// pytorch/torchtitan#2574 and pull 2577.
TEST(Rules, FewerKeyValueHeadsThanTensorRanks) {
  Architecture qwen = stack(40, 16, 2, 256, 12288);
  Strategy s = of(4, 1, 2);
  s.zero = Zero::weights;
  EXPECT_THAT(broken(s, qwen, rules("torchtitan")),
              ElementsAre(AllOf(HasSubstr("tp 4 does not divide 2 key-value heads"),
                                HasSubstr("pytorch/torchtitan#2574"),
                                HasSubstr("tp: the nearest valid value is 2"))));
  s.zero = Zero::optimizer;
  EXPECT_THAT(broken(s, qwen, rules("megatron")), IsEmpty());
  EXPECT_THAT(broken(s, qwen, rules("vllm")), IsEmpty());
  s.zero = Zero::weights;
  qwen.runs = {{{.mixer = Mixer::latent_attention, .ffn = 12288}, 40}};
  EXPECT_THAT(broken(s, qwen, rules("torchtitan")), IsEmpty());
}

// NVIDIA/TensorRT-LLM#1249: as many key-value heads as GPUs, in release 0.8 only.
TEST(Rules, OneKeyValueHeadAGpuUntilItWasLifted) {
  const Architecture qwen = stack(80, 64, 8, 128, 24576);
  EXPECT_THAT(broken(of(2, 1, 1), qwen, rules("tensorrt-llm", "0.8")),
              ElementsAre(AllOf(HasSubstr("tp 2 is not 8, the number of key-value heads"),
                                HasSubstr("NVIDIA/TensorRT-LLM#1249"))));
  EXPECT_THAT(broken(of(8, 1, 1), qwen, rules("tensorrt-llm", "0.8")), IsEmpty());
  EXPECT_THAT(broken(of(2, 1, 1), qwen, rules("tensorrt-llm")), IsEmpty());
}

// NVIDIA/Megatron-LM pull 326: two layers a virtual stage of five layers lose one on each device.
TEST(Rules, FiveLayersAStageInChunksOfTwo) {
  Strategy s = of(1, 8, 1);
  s.schedule = Schedule::interleaved, s.vpp = 2;
  EXPECT_THAT(broken(s, plain(), rules("megatron")),
              ElementsAre(AllOf(HasSubstr("40 layers do not divide by pp x vpp = 8 x 2 = 16"),
                                HasSubstr("vpp: the nearest valid values are 1 and 5"))));
  s.vpp = 5;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), IsEmpty());
}

// modelscope/ms-swift#5737: GLM-4.5-Air, 46 layers over 4 stages.
TEST(Rules, FortySixLayersOverFourStages) {
  const Architecture glm = stack(46, 96, 8, 128, 10944);
  Strategy s = of(2, 4, 1);
  EXPECT_THAT(broken(s, glm, rules("megatron")),
              ElementsAre(AllOf(HasSubstr("46 layers do not divide by pp x vpp = 4 x 1 = 4"),
                                HasSubstr("pp: the nearest valid value is 2"),
                                HasSubstr("--split 11,12,12,11"))));
  s.stage_layers = {11, 12, 12, 11};
  EXPECT_THAT(broken(s, glm, rules("megatron")), IsEmpty());
  EXPECT_THAT(broken(s, glm, rules("megatron", "0.12")), IsEmpty());
  s.stage_layers = {11, 13, 11, 11};  // any layout since Megatron-Core 0.13, ends alone before
  EXPECT_THAT(broken(s, glm, rules("megatron")), IsEmpty());
  EXPECT_THAT(broken(s, glm, rules("megatron", "0.12")),
              ElementsAre(HasSubstr("all stages but the first and the last are alike")));
  s = of(2, 2, 2);
  EXPECT_THAT(broken(s, glm, rules("megatron")), IsEmpty());
}

// Embedding and head count as a layer each in NeMo's recipes (arXiv 2407.21783, section 3.3.2).
TEST(Rules, EndsWithoutBeingAsked) {
  const Architecture llama = stack(126, 128, 8, 128, 53248);
  EXPECT_THAT(broken(of(8, 16, 1), llama, rules("nemo")), IsEmpty());
  EXPECT_THAT(broken(of(8, 16, 1), llama, rules("megatron")),
              ElementsAre(HasSubstr("or --split 7,8,8,8,8,8,8,8,8,8,8,8,8,8,8,7")));
}

// NVIDIA/Megatron-LM#1778: one layer is run, FLOPs are counted for twenty.
TEST(Rules, LastStageLayersWithoutStages) {
  Architecture model = plain();
  model.layers = 20;
  Strategy s = of(1, 1, 8);
  s.stage_layers = {1};
  EXPECT_THAT(broken(s, model, rules("megatron")),
              ElementsAre(AllOf(HasSubstr("stage layers 1 sum to 1, not to the model's 20"),
                                HasSubstr("leave them out"))));
  s.stage_layers = {10, 10};
  EXPECT_THAT(broken(s, model, rules("megatron")),
              ElementsAre(HasSubstr("2 counts, not one for each of 1 chunks")));
}

TEST(Rules, UnevenEndsHoldNoMoreThanTheRest) {
  EXPECT_THAT(uneven_ends(46, 4), ElementsAre(11, 12, 12, 11));
  EXPECT_THAT(uneven_ends(10, 8), ElementsAre(2, 1, 1, 1, 1, 1, 1, 2));
  EXPECT_THAT(uneven_ends(3, 4), IsEmpty());
  EXPECT_THAT(uneven_ends(7, 1), IsEmpty());
  EXPECT_THAT(uneven_ends(5, 2), ElementsAre(2, 3));
}

// OpenRLHF/OpenRLHF#346 and bigcode-project/starcoder#77: what DeepSpeed's assertion says.
TEST(Rules, BatchesThatDoNotMultiply) {
  EXPECT_THAT(*batch_misfit(256, 2, 18, 7),
              AllOf(HasSubstr("2 x 18 x 7 = 252"), HasSubstr("252 = 2 x 18 x 7"),
                    HasSubstr("266 = 2 x 19 x 7")));
  EXPECT_THAT(*batch_misfit(64, 4, 8, 1),
              AllOf(HasSubstr("= 32 "), HasSubstr("the nearest valid value is 64 = 4 x 16 x 1")));
  EXPECT_EQ(batch_misfit(252, 2, 18, 7), std::nullopt);
  Strategy s = of(1, 1, 7);
  s.micro_batch = 2, s.global_batch = 256;
  EXPECT_THAT(broken(s, plain(), rules("deepspeed")), ElementsAre(HasSubstr("252 = 2 x 18 x 7")));
}

// NVIDIA/Megatron-LM#1669: sequences are cut in 2 x cp slices.
TEST(Rules, SequencesOfContextRanks) {
  const auto of_length = [](std::int64_t length, std::int64_t cp) {
    Strategy s = of(1, 1, 1);
    s.seq_len = length, s.cp = cp;
    return broken(s, plain(), rules("megatron"));
  };
  EXPECT_THAT(of_length(7, 2), ElementsAre(HasSubstr("pad to 8")));
  EXPECT_THAT(of_length(8192, 4), IsEmpty());
  EXPECT_THAT(of_length(8200, 8),
              ElementsAre(AllOf(HasSubstr("2 x cp = 16"), HasSubstr("pad to 8208"))));
}

// arXiv 2309.14509: heads are dealt to the context ranks, at most as many as there are.
TEST(Rules, UlyssesDealsHeads) {
  Strategy s = of(4, 1, 1);
  s.cp = 8, s.context_kind = ContextKind::ulysses;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), IsEmpty());
  s.cp = 16;
  EXPECT_THAT(broken(s, plain(), rules("megatron")),
              ElementsAre(AllOf(HasSubstr("4 x 16 = 64 does not divide 32"),
                                HasSubstr("cp: the nearest valid value is 8"))));
  s.context_kind = ContextKind::ring;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), IsEmpty());
  s.zero = Zero::weights, s.cp = 2, s.context_kind = ContextKind::ulysses;
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")),
              ElementsAre(HasSubstr("context: all-gather or ring")));
  EXPECT_THAT(broken(s, plain(), rules("fsdp")), ElementsAre(HasSubstr("cp: 1")));
}

// Megatron-LM's tokenizer pads to --make-vocab-size-divisible-by x tp (NVIDIA/Megatron-LM#525).
TEST(Rules, PaddedVocabularies) {
  EXPECT_EQ(padded_vocabulary(50257, 1, 128), 50304);
  EXPECT_EQ(padded_vocabulary(128256, 8, 128), 129024);
  EXPECT_EQ(padded_vocabulary(151936, 8, 128), 152576);
  EXPECT_EQ(padded_vocabulary(32000, 8, 128), 32768);
  EXPECT_EQ(padded_vocabulary(50257, 1, rules("hf").vocab_multiple), 50257);
}

// NVIDIA/TransformerEngine#1422, #232, #1571 and #688.
TEST(Rules, EightBitShapes) {
  EXPECT_FALSE(eight_bit_shape(896, 712));
  EXPECT_FALSE(eight_bit_shape(50, 4096));
  EXPECT_FALSE(eight_bit_shape(1, 256));
  EXPECT_FALSE(eight_bit_shape(2048, 767));
  EXPECT_TRUE(eight_bit_shape(4096, 4096));

  EXPECT_THAT(broken(of(1, 1, 8), plain(), rules("nemo"), true), IsEmpty());
  Strategy s = of(1, 1, 8);
  s.seq_len = 50;
  EXPECT_THAT(broken(s, plain(), rules("nemo"), true),
              ElementsAre(AllOf(HasSubstr("tokens of a micro-batch on a rank 50"),
                                HasSubstr("of 48 or of 64"))));
  EXPECT_THAT(broken(s, plain(), rules("nemo")), IsEmpty());
  Architecture narrow = plain();
  narrow.ffn = 8 * 712;
  EXPECT_THAT(broken(of(8, 1, 1), narrow, rules("nemo"), true),
              ElementsAre(HasSubstr("feed-forward width / tp 712")));
}

// Megatron-Core's transformer_config refuses activations on the host in a pipeline.
TEST(Rules, OffloadInPipelines) {
  Strategy s = of(1, 1, 2);
  s.offload = Offload::activations;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), IsEmpty());
  s.pp = 2;
  EXPECT_THAT(
      broken(s, plain(), rules("megatron")),
      ElementsAre(HasSubstr("with pp > 1 (NVIDIA/Megatron-LM); offload: none or optimizer")));
  s.offload = Offload::optimizer;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), IsEmpty());
  s.offload = Offload::activations, s.pp = 1, s.recompute = Recompute::full;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), ElementsAre(HasSubstr("with recomputation")));
}

TEST(Rules, ParametersOnTheHostAreSharded) {
  Strategy s = of(1, 1, 8);
  s.zero = Zero::gradients, s.offload = Offload::parameters, s.offload_to_nvme = true;
  EXPECT_THAT(broken(s, plain(), rules("deepspeed")),
              ElementsAre(HasSubstr("needs zero 3, not 2")));
  s.zero = Zero::weights;
  EXPECT_THAT(broken(s, plain(), rules("deepspeed")), IsEmpty());
  EXPECT_THAT(broken(s, plain(), rules("fsdp")), ElementsAre(HasSubstr("not to NVMe")));
}

// tiiuae/falcon-7b: 71 heads, one of keys and values.
TEST(Rules, APrimeCountOfHeads) {
  const Architecture falcon = stack(32, 71, 1, 64, 18176);
  EXPECT_THAT(broken(of(1, 1, 8), falcon, rules("megatron")), IsEmpty());
  for (const std::int64_t tp : {2, 4, 8}) {
    EXPECT_THAT(broken(of(tp, 1, 1), falcon, rules("megatron")),
                ElementsAre(AllOf(HasSubstr("71 is prime, so only tp 1"), HasSubstr("FSDP"))));
  }
}

TEST(Rules, ExpertsAreWholeOnTheirRanks) {
  const Architecture model = of_experts(64, 1408);
  Strategy s = of(2, 1, 8);
  s.sequence_parallel = true, s.ep = 16;  // 2 x 8 ranks hold 4 experts each
  EXPECT_THAT(broken(s, model, rules("megatron")), IsEmpty());
  s.ep = 3;
  EXPECT_THAT(broken(s, model, rules("megatron")),
              ElementsAre(AllOf(HasSubstr("ep 3 does not divide 64 experts"),
                                HasSubstr("the nearest valid values are 2 and 4")),
                          HasSubstr("3 x 1 does not divide tp x cp x dp = 2 x 1 x 8 = 16")));
  s.ep = 32;
  EXPECT_THAT(broken(s, model, rules("megatron")),
              ElementsAre(AllOf(HasSubstr("32 x 1 does not divide"),
                                HasSubstr("the nearest valid value is 16"))));
  s.ep = 1, s.etp = 16;  // 1408 = 2^7 x 11
  EXPECT_THAT(broken(s, model, rules("megatron")), IsEmpty());
  EXPECT_THAT(broken(s, of_experts(64, 1400), rules("megatron")),
              ElementsAre(HasSubstr("etp 16 does not divide the experts' width 1400")));
  s.ep = 8, s.etp = 1, s.sequence_parallel = false;
  EXPECT_THAT(broken(s, model, rules("megatron")),
              ElementsAre(HasSubstr("need sequence parallelism in Megatron-Core")));
  EXPECT_THAT(broken(s, plain(), rules("megatron")),
              ElementsAre(HasSubstr("ep is 8 and the model has no experts")));
  s.zero = Zero::weights;
  EXPECT_THAT(broken(s, model, rules("fsdp")), ElementsAre(HasSubstr("no expert parallelism")));
}

// deepspeed/runtime/pipe/engine.py: ZeRO-2 and 3 are incompatible with pipelines.
TEST(Rules, ShardingByFramework) {
  Strategy s = of(1, 2, 4);
  s.zero = Zero::gradients;
  EXPECT_THAT(broken(s, plain(), rules("deepspeed")),
              ElementsAre(HasSubstr("zero 2 is not what DeepSpeed has with pp > 1 (DeepSpeed); "
                                    "zero: 0 or 1")));
  s.zero = Zero::optimizer;
  EXPECT_THAT(broken(s, plain(), rules("deepspeed")), IsEmpty());
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")), ElementsAre(HasSubstr("zero: 0 or 2 or 3")));
  s.zero = Zero::weights;
  EXPECT_THAT(broken(s, plain(), rules("megatron")), ElementsAre(HasSubstr("zero: 0 or 1")));
  EXPECT_THAT(broken(s, plain(), rules("fsdp")), ElementsAre(HasSubstr("pp: 1")));
}

TEST(Rules, ExpertsAreSuggestedWhereRanksDoNotFit) {
  Strategy s = of(1, 5, 12);
  s.ep = 3;
  const std::vector<std::string> found =
      broken_rules(s, {.model = of_experts(8, 1408), .rules = rules("megatron"), .gpus = 64});
  EXPECT_THAT(found, Contains(AllOf(HasSubstr("ep 3 does not divide 8 experts"),
                                    HasSubstr("the nearest valid values are 2 and 4"))));
  EXPECT_THAT(found, Contains(HasSubstr("64 GPUs are not a multiple of tp x pp x cp = 5")));
}

TEST(Rules, SchedulesAskForChunksAndMicroBatches) {
  Strategy s = of(1, 4, 1);
  s.zero = Zero::weights, s.schedule = Schedule::zero_bubble_v;
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")), ElementsAre(HasSubstr("vpp: 2")));
  s.vpp = 2;
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")), IsEmpty());
  s.schedule = Schedule::dual_pipe;  // arXiv 2412.19437: at least 2 pp micro-batches, in pairs
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")), IsEmpty());
  s.global_batch = 7;
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")),
              ElementsAre(AllOf(HasSubstr("at least 2 x pp = 8"), HasSubstr("value is 8"))));
  s = of(1, 5, 1), s.zero = Zero::weights, s.schedule = Schedule::dual_pipe, s.vpp = 2;
  EXPECT_THAT(broken(s, plain(), rules("torchtitan")), ElementsAre(HasSubstr("pp 5 is odd")));
  s = of(1, 4, 1), s.schedule = Schedule::zero_bubble_h1;
  EXPECT_THAT(broken(s, plain(), rules("megatron")),
              ElementsAre(HasSubstr("schedule: 1f1b or interleaved")));
  s.schedule = Schedule::interleaved, s.vpp = 5;
  EXPECT_THAT(broken(s, plain(), rules("deepspeed")), ElementsAre(HasSubstr("schedule: 1f1b")));
}

std::vector<std::string> trapped(const Strategy& s, const Architecture& model,
                                 const FrameworkRules& rules) {
  return traps(s, {.model = model, .rules = rules, .gpus = s.ranks()});
}

TEST(Traps, AGoodStrategyHasNone) {
  Strategy s = of(4, 2, 2);
  s.global_batch = 64;
  EXPECT_THAT(trapped(s, plain(), rules("megatron")), IsEmpty());
}

TEST(Traps, SayWhatToDo) {
  Strategy s = of(16, 1, 1);
  EXPECT_THAT(trapped(s, plain(), rules("megatron")),
              ElementsAre(HasSubstr("tp 16 reaches across nodes of 8 GPUs"),
                          HasSubstr("each of 8 key-value heads 2 times over"),
                          AllOf(HasSubstr("32000 is padded to 32768"), HasSubstr("2.4 %"))));
  s = of(1, 8, 1), s.global_batch = 8;  // 7 of 15
  EXPECT_THAT(trapped(s, plain(), rules("megatron")),
              ElementsAre(HasSubstr("8 micro-batches through 8 stages idle for 47 %")));
  s = of(1, 1, 8), s.zero = Zero::weights, s.recompute = Recompute::selective;
  EXPECT_THAT(trapped(s, plain(), rules("fsdp")),
              ElementsAre(HasSubstr("again for each of 4 micro-batches"),
                          HasSubstr("recompute selective saves nothing")));
}

TEST(Traps, OfTheModel) {
  Architecture model = plain();
  model.max_positions = 2048, model.hidden = 2500, model.head_dim = 100;
  EXPECT_THAT(
      trapped(of(1, 1, 1), model, rules("hf")),
      ElementsAre(HasSubstr("longer than the 2048 positions"),
                  HasSubstr("head_dim 100 is no multiple of 8"), HasSubstr("2560 would not")));
}

}  // namespace
}  // namespace orrery

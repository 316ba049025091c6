#include "model/count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/test_models.h"

namespace orrery {
namespace {

using enum FlopConvention;

std::int64_t total(const Architecture& a) { return parameters(a).total(); }

// Exact counts of the published checkpoints (model cards, keras-hub presets, llm-foundry's table).
TEST(Parameters, MatchPublishedCheckpointsExactly) {
  EXPECT_EQ(total(gpt2()), 124'439'808);
  EXPECT_EQ(total(llama_3_1_8b()), 8'030'261'248);
  EXPECT_EQ(total(llama_like("llama-3.1-70b", {80, 8192, 64, 8, 128, 28672, 128256})),
            70'553'706'496);
  EXPECT_EQ(total(llama_3_1_405b()), 405'853'388'800);
  EXPECT_EQ(total(llama_3_2_1b()), 1'235'814'400);
  EXPECT_EQ(total(llama_like("llama-2-70b", {80, 8192, 64, 8, 128, 28672, 32000})), 68'976'648'192);
  EXPECT_EQ(total(mistral_7b()), 7'241'732'096);
  EXPECT_EQ(total(qwen2_5("qwen2.5-7b", {28, 3584, 28, 4, 128, 18944, 152064})), 7'615'616'512);
  EXPECT_EQ(total(qwen2_5("qwen2.5-72b", {80, 8192, 64, 8, 128, 29568, 152064})), 72'706'203'648);
  EXPECT_EQ(total(qwen3_8b()), 8'190'735'360);
  EXPECT_EQ(total(gemma_2b()), 2'506'172'416);
  EXPECT_EQ(total(phi_2()), 2'779'683'840);
  EXPECT_EQ(total(llama_like("phi-3-mini", {32, 3072, 32, 32, 96, 8192, 32064})), 3'821'079'552);
  EXPECT_EQ(total(gpt_neox_20b()), 20'554'567'680);
  EXPECT_EQ(total(falcon_40b()), 41'303'293'952);
  EXPECT_EQ(total(bloom_176b()), 176'247'271'424);
  EXPECT_EQ(total(mpt("mpt-70b", 80, 8192, 2048)), 64'862'437'376);
  EXPECT_EQ(total(mpt("mpt-30b", 48, 7168, 2048)), 29'975'214'080);
  EXPECT_EQ(total(opt_66b()), 65'719'701'504);
}

// Unique weights of the published checkpoints; keras-hub prints Mixtral's too.
TEST(Parameters, OfExpertsMatchPublishedCheckpointsExactly) {
  EXPECT_EQ(total(mixtral_8x7b()), 46'702'792'704);
  EXPECT_EQ(total(qwen3_30b_a3b()), 30'532'122'624);
  EXPECT_EQ(total(qwen1_5_moe()), 14'315'784'192);
  EXPECT_EQ(total(gpt_oss_20b()), 20'914'757'184);
  EXPECT_EQ(total(deepseek_v2_lite()), 15'706'484'224);
  EXPECT_EQ(total(deepseek_v3()), 671'026'419'200);
}

// 12.9B, 3.3B, 2.7B and 37B on the model cards; Scout's 17B; DeepSeek-V2-Lite's card (2.4B) and
// gpt-oss's (3.6B) leave embeddings out.
TEST(Parameters, ActiveAreThoseOfOneToken) {
  const auto active = [](const Architecture& a) { return parameters(a).active(); };
  EXPECT_EQ(active(mixtral_8x7b()), 12'879'925'248);
  EXPECT_EQ(active(qwen3_30b_a3b()), 3'353'032'704);
  EXPECT_EQ(active(qwen1_5_moe()), 2'689'173'504);
  EXPECT_EQ(active(gpt_oss_20b()), 4'187'440'704);
  EXPECT_EQ(active(llama_4_scout()), 17'172'894'720);
  EXPECT_EQ(active(deepseek_v2_lite()), 2'661'150'208);
  EXPECT_EQ(active(deepseek_v3()), 37'552'297'472);
  EXPECT_NEAR(static_cast<double>(active(deepseek_v2_lite()) - 2 * 102400 * 2048), 2.24e9, 0.01e9);
}

// "11.5B unique parameters, excluding the shared 0.9B embedding and 0.9B output head": the weights
// readme of deepseek-ai/DeepSeek-V3.
TEST(Parameters, MultiTokenPredictionStandsBesideTheTotal) {
  EXPECT_NEAR(static_cast<double>(parameters(deepseek_v3()).mtp), 11.5e9, 0.15e9);
  EXPECT_EQ(parameters(deepseek_v2_lite()).mtp, 0);
}

TEST(Parameters, OfMambaMatchItsCheckpoints) {
  EXPECT_EQ(total(mamba_2_8b()), 2'768'345'600);
  EXPECT_EQ(parameters(mamba_2_8b()).attention, 0);
}

TEST(Parameters, OfTowersMatchPublishedCheckpointsExactly) {
  EXPECT_EQ(total(t5_base()), 222'903'552);
  const ParameterCount llava = parameters(llava_1_5_7b());
  EXPECT_EQ(llava.total(), 7'063'427'072);
  EXPECT_EQ(llava.towers.front().second, 303'507'456);  // openai/clip-vit-large-patch14-336
  EXPECT_EQ(llava.active(), total(llava_1_5_7b()) - 303'507'456 - llava.projectors);
}

// Brown et al. 2020 table 2.1 prints 175.0 B; Narayanan et al. 2021 eq. 2 prints 174.6 B for 96
// layers of 12288 with a vocabulary of 51200.
TEST(Parameters, MatchThePapersFormulaForGpt3) {
  Architecture a = gpt3_175b();
  const std::int64_t l = 96, h = 12288, s = 2048;
  EXPECT_EQ(total(a), 12 * l * h * h + 13 * l * h + (50257 + s) * h + 2 * h);
  a.vocab = 51200;
  EXPECT_NEAR(static_cast<double>(total(a)), 174.6e9, 0.05e9);
}

TEST(Parameters, CountATiedMatrixOnce) {
  Architecture a = llama_3_2_1b();
  a.tied_embeddings = false;
  EXPECT_EQ(total(a), 1'498'482'688);  // what a count of both prints
  EXPECT_EQ(parameters(a).head, parameters(a).embedding);
  EXPECT_EQ(parameters(llama_3_2_1b()).head, 0);
}

// Narayanan et al. 2021 eq. 3: 96 B s l h^2 (1 + s / 6h + V / 16 l h) with full recompute.
TEST(FlopPerToken, HardwareIsMegatronsFormula) {
  const double l = 96, h = 12288, s = 2048, v = 51200;
  Architecture a = gpt3_175b();
  a.vocab = 51200;
  const double paper = 96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_DOUBLE_EQ(flop_per_token(a, 2048, hardware).value(), paper);
  const double model = 72 * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  EXPECT_DOUBLE_EQ(flop_per_token(a, 2048, full_attention).value(), model);
  EXPECT_DOUBLE_EQ(flop_per_token(a, 2048, hardware, 0).value(), model);
  EXPECT_LT(flop_per_token(a, 2048, hardware, 0.5), flop_per_token(a, 2048, hardware));
}

// PaLM 540B, Chowdhery et al. 2022 section 4.1: 238.3 k tokens/s on 6144 chips of 275 TFLOP/s is
// 46.2 % MFU, 45.7 % without attention. Multi-query, one parallel block, SwiGLU, tied.
TEST(FlopPerToken, PalmReproducesThePapersUtilisation) {
  Architecture a = llama_like("palm-540b", {118, 18432, 48, 1, 256, 73728, 256000});
  a.tied_embeddings = a.parallel_block = true;
  a.norms_per_layer = 1;
  const double peak = 6144 * 275e12;
  EXPECT_NEAR(238.3e3 * flop_per_token(a, 2048, palm).value() / peak, 0.462, 0.0005);
  EXPECT_NEAR(238.3e3 * flop_per_token(a, 2048, six_n).value() / peak, 0.457, 0.0005);
}

// llm-foundry's published table, H100 of 989.5 TFLOP/s: tokens/s a GPU and MFU in percent.
TEST(FlopPerToken, PalmReproducesLlmFoundrysTable) {
  const auto mfu = [](const Architecture& a, std::int64_t seq_len, double tokens) {
    return 100 * tokens * flop_per_token(a, seq_len, palm).value() / 989.5e12;
  };
  EXPECT_NEAR(mfu(mpt("mpt-70b", 80, 8192, 2048), 2048, 1007), 41.25, 41.25e-3);
  EXPECT_NEAR(mfu(mpt("mpt-70b", 80, 8192, 2048), 2048, 1058), 43.36, 43.36e-3);
  EXPECT_NEAR(mfu(mpt("mpt-30b", 48, 7168, 2048), 2048, 2115), 40.27, 40.27e-3);
  EXPECT_NEAR(mfu(mpt("mpt-30b", 48, 7168, 8192), 8192, 1384), 29.92, 29.92e-3);
}

// Megatron Bridge's published tables on DGX H100: TFLOP/s over tokens/s, a GPU.
TEST(FlopPerToken, CausalAttentionReproducesNvidiasTables) {
  const double small = flop_per_token(llama_3_1_8b(), 8192, causal_attention).value();
  EXPECT_NEAR(small, 744e12 / 14451, 0.001 * small);
  const double large = flop_per_token(llama_3_1_405b(), 8192, causal_attention).value();
  EXPECT_NEAR(large, 763e12 / 302, 0.0025 * large);  // tokens/s printed to three digits
}

// NVIDIA's tables of experts (DGX Cloud benchmarking's Grok-1, Llama 4 Maverick and DeepSeek-V3,
// Megatron Bridge's Qwen3): TFLOP/s over tokens/s, a GPU. Maverick's active shape is Scout's;
// DeepSeek-V3's rows count its multi-token prediction.
TEST(FlopPerToken, CausalAttentionReproducesNvidiasTablesOfExperts) {
  const auto gigaflop = [](const Architecture& a, std::int64_t seq_len) {
    return flop_per_token(a, seq_len, causal_attention).value() / 1e9;
  };
  EXPECT_NEAR(gigaflop(qwen3_30b_a3b(), 4096), 23.0, 0.1);
  EXPECT_NEAR(gigaflop(llama_4_scout(), 8192), 108.96, 0.1);
  Architecture grok = llama_like("grok-1", {64, 6144, 48, 8, 128, 32768, 131072});
  grok.experts = {.count = 8, .top_k = 2, .width = 32768};
  grok.runs = dense_then_experts(grok, 0);
  EXPECT_NEAR(gigaflop(grok, 8192), 521.2, 1);
  EXPECT_NEAR(gigaflop(deepseek_v3(), 4096) + mtp_flop_per_token(deepseek_v3(), 4096).value() / 1e9,
              260.0, 1);
}

TEST(FlopPerToken, NvidiasShortcutOverParametersIsWithinATenthOfAPercent) {
  for (Architecture a : one_of_each()) {
    a.tied_embeddings = false;
    const ParameterCount n = parameters(a);
    const double shortcut = 6 * static_cast<double>(n.total() - n.embedding - n.positions);
    const double attention = 12.0 * static_cast<double>(a.layers * a.heads * a.head_dim) * 2048;
    const double exact = flop_per_token(a, 2048, full_attention).value();
    EXPECT_NEAR(shortcut + attention, exact, 0.001 * exact) << a.name;
  }
}

TEST(FlopPerToken, AWindowLimitsCausalAttentionOnly) {
  const Architecture windowed = mistral_7b();
  Architecture whole = windowed;
  whole.sliding_window = 0;
  EXPECT_EQ(flop_per_token(windowed, 4096, causal_attention),
            flop_per_token(whole, 4096, causal_attention));
  const double heads = 32 * 32 * 128, w = 4096, s = 32768;
  const Flop fewer = flop_per_token(whole, 32768, causal_attention) -
                     flop_per_token(windowed, 32768, causal_attention);
  EXPECT_DOUBLE_EQ(fewer.value(), 12 * heads * (s / 2 - (w - w * w / (2 * s))));
  EXPECT_EQ(flop_per_token(windowed, 32768, full_attention),
            flop_per_token(whole, 32768, full_attention));
}

// Of 100 tokens in blocks of 32, three see 32 x 16 pairs and the rest of 4 sees 4 x 2.
TEST(FlopPerToken, ChunksAreCountedOneByOne) {
  Architecture a = llama_like("chunked", {4, 64, 4, 4, 16, 256, 1000});
  a.runs = {{{.window = 32, .chunked = true, .ffn = 256}, 4}};
  const Flop all = flop_per_token(a, 100, full_attention);
  const double pairs = 100 * 100 - (3 * 32 * 16 + 4 * 2);
  EXPECT_NEAR((all - flop_per_token(a, 100, causal_attention)).value(),
              12.0 * 4 * 4 * 16 * pairs / 100, 1);
}

TEST(FlopPerToken, WidthsOfLatentAttentionAreThoseOfItsHeads) {
  const Architecture a = deepseek_v2_lite();
  const Flop more = flop_per_token(a, 4096, palm) - flop_per_token(a, 2048, palm);
  EXPECT_DOUBLE_EQ(more.value(), 6.0 * 27 * 16 * (192 + 128) * 2048);
}

// Megatron-LM's mamba_layer_flops, three times for forward and backward: 2 h (2 d + 2 g n + m) +
// 7 d n + 2 d h, and the logits.
TEST(FlopPerToken, OfMambaIsMegatronsFormula) {
  const double h = 2560, d = 5120, n = 128, m = 80;
  const double layer = 2 * h * (2 * d + 2 * n + m) + 7 * d * n + 2 * d * h;
  const Flop counted = flop_per_token(mamba2_2_7b(), 2048, causal_attention);
  EXPECT_DOUBLE_EQ(counted.value(), 3 * (64 * layer + 2 * h * 50288));
  EXPECT_EQ(flop_per_token(mamba2_2_7b(), 4096, full_attention), counted);
}

// CLIP ViT-L/14: 24 layers of 1024, whose 577 tokens all see each other, and 588 inputs a patch.
TEST(FlopPerInput, IsTheStackItsPatchesAndTheProjector) {
  Tower clip = llava_1_5_7b().towers.front();
  clip.projector.clear();
  const double h = 1024, s = 577;
  EXPECT_DOUBLE_EQ(flop_per_input(clip).value(),
                   s * (24 * (72 * h * h + 12 * h * s) + 6 * 588 * h));
  const double projector = 6.0 * 576 * (1024.0 * 4096 + 4096.0 * 4096);
  EXPECT_DOUBLE_EQ((flop_per_input(llava_1_5_7b().towers.front()) - flop_per_input(clip)).value(),
                   projector);
}

TEST(FlopConvention, NamesGoBothWays) {
  for (const auto convention : {full_attention, causal_attention, six_n, palm, hardware}) {
    EXPECT_EQ(flop_convention(name_of(convention)), convention);
  }
}

TEST(FlopConvention, AWrongNameListsTheValidOnes) {
  EXPECT_THAT([] { flop_convention("9n"); },
              testing::ThrowsMessage<InputError>(
                  "unknown FLOP convention \"9n\"; use one of full-attention, causal-attention, "
                  "6n, palm, hardware"));
}

// Llama 3.1 8B: 2 x 32 layers x 8 heads x 128 x 2 bytes is 128 KiB a token.
TEST(KvBytesPerToken, CountsKeysAndValuesOfEveryLayer) {
  EXPECT_EQ(kv_bytes_per_token(llama_3_1_8b(), Precision::bf16), Bytes(131072));
  EXPECT_EQ(kv_bytes_per_token(llama_3_1_8b(), Precision::fp8), Bytes(65536));
  EXPECT_EQ(kv_bytes_per_token(gemma_2b(), Precision::bf16), Bytes(2.0 * 18 * 256 * 2));
}

// DeepSeek-V2 (arXiv 2405.04434) table 1: 9 / 2 d_h numbers a layer, with d_h = 128.
TEST(KvBytesPerToken, OfLatentAttentionAreTheLatentAndTheSharedKey) {
  EXPECT_EQ(kv_bytes_per_token(deepseek_v3(), Precision::bf16), Bytes(61 * 4.5 * 128 * 2));
}

// 48 layers of 8 heads of 128 at a context of 1 Mi tokens; three in four see 8192 tokens.
TEST(KvBytes, AWindowCapsWhatALayerKeeps) {
  const auto gib = [](const Architecture& a) {
    return kv_bytes(a, 1048576, Precision::bf16).value() / (1 << 30);
  };
  Architecture whole = llama_4_scout();
  whole.runs = {{{.experts = true}, 48}};
  EXPECT_DOUBLE_EQ(gib(whole), 8 * 24.00);
  EXPECT_NEAR(gib(llama_4_scout()), 8 * 6.14, 0.01);
  EXPECT_EQ(kv_bytes_per_token(whole, Precision::bf16),
            kv_bytes_per_token(llama_4_scout(), Precision::bf16));
}

TEST(KvBytes, CrossAttentionKeepsTheSourceOnce) {
  const Bytes token = kv_bytes_per_token(t5_base(), Precision::bf16);
  EXPECT_EQ(kv_bytes(t5_base(), 100, Precision::bf16), 100 * token + 512 * token);
}

TEST(StateBytes, OfMambaDoNotGrow) {
  EXPECT_EQ(state_bytes(mamba_2_8b(), Precision::fp32), Bytes(64.0 * 5120 * (16 + 4) * 4));
  EXPECT_EQ(state_bytes(mamba2_2_7b(), Precision::fp32),
            Bytes(64.0 * (5120 * 128 + (5120 + 256) * 4) * 4));
  EXPECT_EQ(kv_bytes(mamba_2_8b(), 1 << 20, Precision::bf16), Bytes(0));
  EXPECT_EQ(state_bytes(llama_3_1_8b(), Precision::fp32), Bytes(0));
}

}  // namespace
}  // namespace orrery

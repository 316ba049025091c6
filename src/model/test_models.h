// Architectures for the tests, written down from their public configurations.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "catalog/architecture.h"

namespace orrery {

// RMS norms, no biases, rotary positions, gated: LLaMA and most that followed.
struct Sizes {
  std::int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
};
inline Architecture llama_like(const std::string& name, const Sizes& s) {
  Architecture a;
  a.name = name;
  a.layers = s.layers;
  a.hidden = s.hidden;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = s.head_dim;
  a.ffn = s.ffn;
  a.vocab = s.vocab;
  a.activation = Activation::swiglu;
  a.norm = Norm::rms_norm;
  a.positions = Positions::rotary;
  return a;
}

// Layer norms, biases everywhere, GELU, a feed-forward of 4 hidden, tied: GPT-2 and GPT-3.
inline Architecture gpt_like(const std::string& name, std::int64_t layers, std::int64_t hidden,
                             std::int64_t heads, std::int64_t vocab, std::int64_t position_rows) {
  Architecture a =
      llama_like(name, {layers, hidden, heads, heads, hidden / heads, 4 * hidden, vocab});
  a.activation = Activation::gelu;
  a.norm = Norm::layer_norm;
  a.positions = position_rows > 0 ? Positions::learned : Positions::none;
  a.position_rows = position_rows;
  a.tied_embeddings = true;
  a.qkv_bias = a.output_bias = a.mlp_bias = a.norm_bias = true;
  return a;
}

inline Architecture gpt2() { return gpt_like("gpt2", 12, 768, 12, 50257, 1024); }
inline Architecture gpt3_175b() { return gpt_like("gpt3-175b", 96, 12288, 96, 50257, 2048); }

inline Architecture llama_3_1_8b() {
  return llama_like("llama-3.1-8b", {32, 4096, 32, 8, 128, 14336, 128256});
}

inline Architecture llama_3_1_405b() {
  return llama_like("llama-3.1-405b", {126, 16384, 128, 8, 128, 53248, 128256});
}

inline Architecture llama_3_2_1b() {
  Architecture a = llama_like("llama-3.2-1b", {16, 2048, 32, 8, 64, 8192, 128256});
  a.tied_embeddings = true;
  return a;
}

inline Architecture mistral_7b() {
  Architecture a = llama_like("mistral-7b", {32, 4096, 32, 8, 128, 14336, 32000});
  a.sliding_window = 4096;
  return a;
}

inline Architecture qwen2_5(const std::string& name, const Sizes& sizes) {
  Architecture a = llama_like(name, sizes);
  a.qkv_bias = true;
  return a;
}

inline Architecture qwen3_8b() {
  Architecture a = llama_like("qwen3-8b", {36, 4096, 32, 8, 128, 12288, 151936});
  a.qk_norm = true;
  return a;
}

inline Architecture gemma_2b() {
  Architecture a = llama_like("gemma-2b", {18, 2048, 8, 1, 256, 16384, 256000});
  a.activation = Activation::geglu;
  a.tied_embeddings = true;
  return a;
}

// One norm for both halves of the block, a bias on the head.
inline Architecture phi_2() {
  Architecture a = gpt_like("phi-2", 32, 2560, 32, 51200, 0);
  a.positions = Positions::rotary;
  a.tied_embeddings = false;
  a.head_bias = a.parallel_block = true;
  a.norms_per_layer = 1;
  return a;
}

// A parallel block with a norm for each half.
inline Architecture gpt_neox_20b() {
  Architecture a = gpt_like("gpt-neox-20b", 44, 6144, 64, 50432, 0);
  a.positions = Positions::rotary;
  a.tied_embeddings = false;
  a.parallel_block = true;
  return a;
}

inline Architecture falcon_40b() {
  Architecture a = gpt_like("falcon-40b", 60, 8192, 128, 65024, 0);
  a.kv_heads = 8;
  a.positions = Positions::rotary;
  a.qkv_bias = a.output_bias = a.mlp_bias = false;
  a.parallel_block = true;
  return a;
}

inline Architecture bloom_176b() {
  Architecture a = gpt_like("bloom-176b", 70, 14336, 112, 250880, 0);
  a.positions = Positions::alibi;
  a.embedding_norm = true;
  return a;
}

inline Architecture opt_66b() {
  Architecture a = gpt_like("opt-66b", 64, 9216, 72, 50272, 2050);
  a.activation = Activation::relu;
  return a;
}

// As llm-foundry's training benchmarks configure it: with biases, learned positions for the
// sequence length in use.
inline Architecture mpt(const std::string& name, std::int64_t layers, std::int64_t hidden,
                        std::int64_t seq_len) {
  return gpt_like(name, layers, hidden, hidden / 128, 50368, seq_len);
}

// `count` expert layers after `dense` layers of width a.ffn.
inline std::vector<LayerRun> dense_then_experts(const Architecture& a, std::int64_t dense,
                                                Mixer mixer = Mixer::attention) {
  std::vector<LayerRun> runs;
  if (dense > 0) runs.push_back({{.name = "dense", .mixer = mixer, .ffn = a.ffn}, dense});
  runs.push_back({{.name = "experts", .mixer = mixer, .experts = true}, a.layers - dense});
  return runs;
}

inline Architecture mixtral_8x7b() {
  Architecture a = llama_like("mixtral-8x7b", {32, 4096, 32, 8, 128, 14336, 32000});
  a.experts = {.count = 8, .top_k = 2, .width = 14336};
  a.runs = dense_then_experts(a, 0);
  return a;
}

inline Architecture qwen3_30b_a3b() {
  Architecture a = llama_like("qwen3-30b-a3b", {48, 2048, 32, 4, 128, 6144, 151936});
  a.qk_norm = true;
  a.experts = {.count = 128, .top_k = 8, .width = 768};
  a.runs = dense_then_experts(a, 0);
  return a;
}

// Shared experts behind a gate.
inline Architecture qwen1_5_moe() {
  Architecture a = qwen2_5("qwen1.5-moe-a2.7b", {24, 2048, 16, 16, 128, 5632, 151936});
  a.experts = {.count = 60, .top_k = 4, .width = 1408, .shared_width = 5632, .shared_gate = true};
  a.runs = dense_then_experts(a, 0);
  return a;
}

// Biases everywhere, sinks, every other layer with a window of 128.
inline Architecture gpt_oss_20b() {
  Architecture a = llama_like("gpt-oss-20b", {24, 2880, 64, 8, 64, 2880, 201088});
  a.qkv_bias = a.output_bias = a.attention_sinks = true;
  a.experts = {.count = 32, .top_k = 4, .width = 2880, .router_bias = true, .bias = true};
  for (int i = 0; i < 12; ++i) {
    a.runs.push_back({{.name = "local", .window = 128, .experts = true}, 1});
    a.runs.push_back({{.name = "global", .experts = true}, 1});
  }
  return a;
}

// The text stack: three layers of four see blocks of 8192 tokens, and no positions every fourth.
inline Architecture llama_4_scout() {
  Architecture a = llama_like("llama-4-scout", {48, 5120, 40, 8, 128, 16384, 202048});
  a.experts = {.count = 16, .top_k = 1, .width = 8192, .shared_width = 8192};
  for (int i = 0; i < 12; ++i) {
    a.runs.push_back({{.name = "local", .window = 8192, .chunked = true, .experts = true}, 3});
    a.runs.push_back({{.name = "global", .rotary = false, .experts = true}, 1});
  }
  return a;
}

inline Architecture deepseek_v2_lite() {
  Architecture a = llama_like("deepseek-v2-lite", {27, 2048, 16, 16, 192, 10944, 102400});
  a.latent = {.kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  a.experts = {.count = 64, .top_k = 6, .width = 1408, .shared_width = 2 * 1408};
  a.runs = dense_then_experts(a, 1, Mixer::latent_attention);
  return a;
}

inline Architecture deepseek_v3() {
  Architecture a = llama_like("deepseek-v3", {61, 7168, 128, 128, 192, 18432, 129280});
  a.latent = {.q_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  a.experts = {
      .count = 256, .top_k = 8, .width = 2048, .shared_width = 2048, .correction_bias = true};
  a.mtp_layers = 1;
  a.runs = dense_then_experts(a, 3, Mixer::latent_attention);
  return a;
}

inline Architecture mamba_2_8b() {
  Architecture a = llama_like("mamba-2.8b", {64, 2560, 1, 1, 2560, 0, 50280});
  a.positions = Positions::none;
  a.tied_embeddings = true;
  a.norms_per_layer = 1;
  a.state_space = {.inner = 5120, .state = 16, .conv = 4, .dt_rank = 160};
  a.runs = {{{.name = "mamba", .mixer = Mixer::selective_scan}, 64}};
  return a;
}

inline Architecture mamba2_2_7b() {
  Architecture a = mamba_2_8b();
  a.name = "mamba2-2.7b";
  a.vocab = 50288;
  a.state_space = {.inner = 5120, .state = 128, .conv = 4, .heads = 80, .groups = 1};
  a.runs = {{{.name = "mamba", .mixer = Mixer::dual_scan}, 64}};
  return a;
}

// An encoder of the same shape as the decoder, one embedding for both; the 32 buckets of relative
// position are 12 heads wide in each stack.
inline Architecture t5_base() {
  Architecture a = llama_like("t5-base", {12, 768, 12, 12, 64, 3072, 32128});
  a.activation = Activation::relu;
  a.positions = Positions::none;
  a.tied_embeddings = true;
  a.extra = {{"relative positions", 32 * 12}};
  Tower encoder = {.name = "encoder",
                   .stack = a,
                   .tokens = 512,
                   .tokens_out = 512,
                   .projector = {},
                   .shares_embedding = true};
  encoder.stack.causal = encoder.stack.has_head = false;
  a.runs = {{{.ffn = 3072, .cross_attention = true}, 12}};
  a.towers = {encoder};
  return a;
}

// CLIP ViT-L/14 at 336 pixels (a class token, a norm before and after the stack, which counts its
// unused last layer) and a projector of two matrices on a Llama 2 7B.
inline Architecture llava_1_5_7b() {
  Architecture a = llama_like("llava-1.5-7b", {32, 4096, 32, 32, 128, 11008, 32064});
  Architecture clip = gpt_like("clip", 24, 1024, 16, 0, 577);
  clip.causal = clip.has_head = false;
  clip.embedding_norm = true;
  clip.extra = {{"class token", 1024}};
  a.towers = {{.name = "vision",
               .stack = clip,
               .patch = 3 * 14 * 14,
               .tokens = 577,
               .tokens_out = 576,
               .projector = {{1024, 4096, true}, {4096, 4096, true}}}};
  return a;
}

// One of each kind of block, for laws that hold for all.
inline std::vector<Architecture> one_of_each() {
  return {gpt2(),
          gpt3_175b(),
          llama_3_1_8b(),
          llama_3_2_1b(),
          mistral_7b(),
          qwen3_8b(),
          gemma_2b(),
          gpt_neox_20b(),
          falcon_40b(),
          bloom_176b(),
          phi_2(),
          opt_66b(),
          qwen2_5("qwen2.5-7b", {28, 3584, 28, 4, 128, 18944, 152064})};
}

// One of 0 ... n - 1.
inline std::int64_t draw(std::mt19937& random, std::int64_t n) {
  return static_cast<std::int64_t>(random()) % n;
}

// Any valid architecture, small; the same for the same `random`.
inline Architecture any_architecture(std::mt19937& random) {
  const auto below = [&random](std::int64_t n) { return draw(random, n); };
  const auto coin = [&] { return below(2) == 1; };
  Architecture a;
  a.name = "any";
  a.layers = 1 + below(5);
  a.kv_heads = 1 + below(4);
  a.heads = a.kv_heads * (1 + below(4));
  a.head_dim = 2 + 2 * below(16);
  a.hidden = 8 + 8 * below(32);
  a.ffn = 8 + 8 * below(64);
  a.vocab = 10 + below(1000);
  a.position_rows = coin() ? 64 + below(64) : 0;
  a.sliding_window = coin() ? 1 + below(80) : 0;
  a.activation = static_cast<Activation>(below(5));
  a.positions =
      a.position_rows > 0 ? Positions::learned : (coin() ? Positions::rotary : Positions::alibi);
  a.tied_embeddings = coin();
  a.qkv_bias = coin();
  a.output_bias = coin();
  a.mlp_bias = coin();
  a.norm_bias = coin();
  a.head_bias = coin();
  a.qk_norm = coin();
  a.parallel_block = coin();
  a.norms_per_layer = a.parallel_block && coin() ? 1 : 2;
  a.final_norm = coin();
  a.embedding_norm = coin();
  return a;
}

// Any stack that mixes kinds of layer, some with a tower; small, the same for the same `random`.
inline Architecture any_mixed_architecture(std::mt19937& random) {
  const auto below = [&random](std::int64_t n) { return draw(random, n); };
  const auto coin = [&] { return below(2) == 1; };
  Architecture a = any_architecture(random);
  a.parallel_block = false;
  a.norms_per_layer = coin() ? 2 : 4;
  a.attention_sinks = coin();
  a.latent = {.q_rank = coin() ? 16 : 0,
              .kv_rank = 8 + below(8),
              .nope_dim = 4 + below(8),
              .rope_dim = 2 + below(4),
              .value_dim = 4 + below(16)};
  a.experts = {.count = 2 + below(8),
               .top_k = 1 + below(2),
               .width = 8 + below(32),
               .shared_width = coin() ? 8 + below(32) : 0,
               .shared_gate = false,
               .router_bias = coin(),
               .correction_bias = coin(),
               .bias = coin()};
  a.experts.shared_gate = a.experts.shared_width > 0 && coin();
  a.state_space = {.inner = 2 * a.hidden,
                   .state = 4 + below(8),
                   .conv = 4,
                   .dt_rank = 4,
                   .heads = 4,
                   .groups = 1,
                   .bias = coin(),
                   .conv_bias = coin()};
  a.layers = 0;
  for (int i = 0; i < 4; ++i) {
    LayerKind kind = {.name = "kind" + std::to_string(i),
                      .mixer = static_cast<Mixer>(below(5)),
                      .window = coin() ? 1 + below(40) : 0,
                      .chunked = coin(),
                      .rotary = coin(),
                      .ffn = coin() ? a.ffn : 0,
                      .experts = coin()};
    if (kind.mixer == Mixer::none && !kind.experts) kind.ffn = a.ffn;
    a.runs.push_back({kind, 1 + below(3)});
    a.layers += a.runs.back().count;
  }
  if (coin()) a.runs.push_back(a.runs.front()), a.layers += a.runs.front().count;
  if (coin()) return a;
  Architecture stack = any_architecture(random);
  stack.causal = stack.has_head = stack.head_bias = false;
  stack.vocab = 0;
  a.towers = {{.name = "vision",
               .stack = stack,
               .patch = 12,
               .tokens = 9,
               .tokens_out = 8,
               .projector = {{stack.hidden, a.hidden, coin()}, {a.hidden, a.hidden, coin()}}}};
  return a;
}

}  // namespace orrery

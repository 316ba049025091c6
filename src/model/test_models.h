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

}  // namespace orrery

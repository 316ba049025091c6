// Parameters and FLOPs of an architecture, under the conventions that papers use.
#pragma once

#include <cstdint>
#include <string_view>

#include "catalog/architecture.h"
#include "catalog/gpu.h"
#include "units/quantity.h"

namespace orrery {

struct ParameterCount {
  std::int64_t embedding, positions, attention, mlp, norms, head;  // head: its bias only when tied
  std::int64_t total() const;
};

// Exact number of unique trainable weights, biases and norms included.
ParameterCount parameters(const Architecture& architecture);

// FLOPs of one trained token, forward and backward. With
//   N    all parameters, a tied matrix once
//   M    weights of the decoder's matrices and of the logits: no bias, norm, position or lookup
//   A    12 L a d s: q k^T and p v of every pair of tokens, L layers, a heads of width d, s tokens
// each convention, with who prints it:
enum class FlopConvention {
  // 6 M + A. Narayanan et al. 2021 (arXiv 2104.04473) eq. 3 without its recomputed forward;
  // Korthikanti et al. 2022 (2205.05198) appendix A; NVIDIA's DGX Cloud recipes and NeMo.
  full_attention,
  // 6 M + A / 2: only pairs up to the diagonal; with a sliding window w < s, A (w - w^2 / 2s) / s.
  // NVIDIA's Megatron Bridge tables: 6 x (parameters - input embedding) + A / 2; their counting of
  // norms and biases is 0.004 % of Llama's, 0.1 % of GPT-2's.
  causal_attention,
  // 6 N. Kaplan et al. 2020 (2001.08361) with the embeddings counted.
  six_n,
  // 6 N + A. Chowdhery et al. 2022 (PaLM, 2204.02311) appendix B; llm-foundry's MFU.
  palm,
  // 6 M + A, and again the forward pass, a third, of the decoder layers that are recomputed:
  // Narayanan et al. 2021 eq. 3, 96 B s l h^2 (1 + s / 6h + V / 16 l h).
  hardware,
};
std::string_view name_of(FlopConvention);
FlopConvention flop_convention(std::string_view name);  // InputError with the valid names

// `recomputed`: share of the decoder layers whose forward pass runs twice; read by `hardware` only.
Flop flop_per_token(const Architecture&, std::int64_t seq_len, FlopConvention,
                    double recomputed = 1);

// Keys and values of every layer; a sliding window limits the tokens kept, not their size.
Bytes kv_bytes_per_token(const Architecture&, Precision);

}  // namespace orrery

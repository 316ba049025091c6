// Parameters and FLOPs of an architecture, under the conventions that papers use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/architecture.h"
#include "catalog/gpu.h"
#include "units/quantity.h"

namespace orrery {

// Unique weights by what they are for, biases included; a tied matrix once.
struct ParameterCount {
  std::int64_t embedding = 0, positions = 0;
  std::int64_t attention = 0;    // of every kind, cross attention included
  std::int64_t state_space = 0;  // of Mamba's layers
  std::int64_t mlp = 0;          // dense feed-forwards
  std::int64_t experts = 0;      // routed
  std::int64_t shared_experts = 0;
  std::int64_t router = 0;  // with the untrained numbers that correct its choice
  std::int64_t norms = 0;
  std::int64_t head = 0;                                     // its bias only when tied
  std::vector<std::pair<std::string, std::int64_t>> towers;  // by name, without projectors
  std::int64_t projectors = 0;
  std::int64_t extra = 0;
  std::int64_t custom = 0;  // of layers described by hand

  std::int64_t routed = 0;  // of `experts`, those that one token sees
  // Multi-token prediction modules, beside the total as in DeepSeek-V3's official count, and
  // without the embedding and head that they share with the main model.
  std::int64_t mtp = 0;

  std::int64_t total() const;
  // Of one text token: every weight of the main stack, embeddings whole, but only its own routed
  // experts; no tower, no projector.
  std::int64_t active() const;
};

// Exact number of unique weights.
ParameterCount parameters(const Architecture& architecture);

// FLOPs of one trained token, forward and backward. With
//   N    the active parameters: all of a dense decoder, a tied matrix once
//   M    of them the decoder's matrices and the logits: no bias, norm, position or lookup; the
//        router is a matrix
//   A    12 L a d s: q k^T and p v of every pair of tokens, L layers, a heads of width d, s tokens
//        (latent attention: 6 L a (d + e) s, its values being e wide), and 21 i n of each Mamba
//        layer for its scan, i channels of n states: Megatron-LM counts 7 i n forward
// each convention, with who prints it. Towers and multi-token prediction
// are not in it.
enum class FlopConvention {
  // 6 M + A. Narayanan et al. 2021 (arXiv 2104.04473) eq. 3 without its recomputed forward;
  // Korthikanti et al. 2022 (2205.05198) appendix A; NVIDIA's DGX Cloud recipes and NeMo.
  full_attention,
  // 6 M + A / 2: only pairs up to the diagonal; with a sliding window w < s, A (w - w^2 / 2s) / s.
  // NVIDIA's Megatron Bridge tables: 6 x (parameters - input embedding) + A / 2; their counting of
  // norms and biases is 0.004 % of Llama's, 0.1 % of GPT-2's. A window that is a block of the
  // sequence (chunked) leaves w / 2 pairs a token.
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

// Of the multi-token prediction modules, which predict each token once more: their layer and the
// matrix before it, and the logits again; 6 M + A / 2. 0 without them.
Flop mtp_flop_per_token(const Architecture&, std::int64_t seq_len);

// Of one image, clip or source text of tower.tokens: its stack, patches and projector, forward and
// backward, 6 M + A; it sees all its tokens, or those of its windows.
Flop flop_per_input(const Tower&);

// Keys and values that one more token adds to the layers that attend, latents where attention is
// latent; a window limits the tokens kept, not their size.
Bytes kv_bytes_per_token(const Architecture&, Precision);

// Keys and values of a sequence: a layer with a window keeps at most as many tokens, and one with
// cross attention those of the whole source.
Bytes kv_bytes(const Architecture&, std::int64_t tokens, Precision);

// What the Mamba layers keep of a sequence, however long: [inner, state] of the recurrence and
// [channels, conv] of the filter, as state-spaces/mamba allocates them.
Bytes state_bytes(const Architecture&, Precision);

}  // namespace orrery

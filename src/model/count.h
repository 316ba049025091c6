// Parameters and FLOPs of an architecture, under the conventions that papers use.
#pragma once

#include <cstdint>
#include <string_view>

#include "catalog/architecture.h"
#include "model/graph.h"
#include "units/quantity.h"

namespace orrery {

struct ParameterCount {
  std::int64_t embedding, positions, attention, mlp, norms, head;  // head: 0 when tied
  std::int64_t total() const;
};

// Exact number of unique trainable weights, biases and norms included.
ParameterCount parameters(const Architecture& architecture);

enum class FlopConvention {
  full_attention,    // 6 N_matmul + 12 L a d s a token (Megatron, PaLM appendix B)
  causal_attention,  // scores above the diagonal not counted: 6 N_matmul + 6 L a d s
  six_n,             // 6 N, N all parameters
  palm,              // 6 N + 12 L a d s with N all parameters but input embeddings... see count.cpp
  hardware,          // full attention and every recomputed forward
};
std::string_view name_of(FlopConvention);
FlopConvention flop_convention(std::string_view name);  // InputError with the valid names

// Model FLOPs of one trained token (forward and backward, nothing recomputed).
Flop flop_per_token(const Architecture&, std::int64_t seq_len, FlopConvention);

Bytes kv_bytes_per_token(const Architecture&, Precision);

}  // namespace orrery

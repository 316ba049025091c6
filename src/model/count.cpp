#include "model/count.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "model/graph.h"

namespace orrery {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

struct Matrices {
  std::int64_t attention, mlp;  // of one layer
  std::int64_t logits;
};

Matrices matrices(const Architecture& a) {
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const std::int64_t projections = gated(a.activation) ? 3 : 2;
  return {.attention = a.hidden * (q + 2 * kv) + q * a.hidden,
          .mlp = projections * a.hidden * a.ffn,
          .logits = a.hidden * a.vocab};
}

std::int64_t attention_biases(const Architecture& a) {
  const std::int64_t qkv = (a.heads + 2 * a.kv_heads) * a.head_dim;
  return (a.qkv_bias ? qkv : 0) + (a.output_bias ? a.hidden : 0);
}

std::int64_t mlp_biases(const Architecture& a) {
  if (!a.mlp_bias) return 0;
  return (gated(a.activation) ? 2 : 1) * a.ffn + a.hidden;
}

std::int64_t norm_parameters(const Architecture& a) {
  const std::int64_t qk = a.qk_norm ? 2 * a.head_dim : 0;
  const std::int64_t outside = (a.final_norm ? 1 : 0) + (a.embedding_norm ? 1 : 0);
  const std::int64_t weights = a.layers * (a.norms_per_layer * a.hidden + qk) + outside * a.hidden;
  return a.norm_bias ? 2 * weights : weights;
}

// Attention's products, forward and backward, for one token.
double attention_flop(const Architecture& a, std::int64_t seq_len, bool causal) {
  const double pairs = attended_pairs({.batch = 1,
                                       .heads = a.heads,
                                       .kv_heads = a.kv_heads,
                                       .head_dim = a.head_dim,
                                       .queries = seq_len,
                                       .keys = seq_len,
                                       .causal = causal,
                                       .window = causal ? a.sliding_window : 0});
  return 12 * real(a.layers * a.heads * a.head_dim) * pairs / real(seq_len);
}

double decoder_flop(const Architecture& a, std::int64_t seq_len, bool causal) {
  const Matrices m = matrices(a);
  return 6 * real(a.layers * (m.attention + m.mlp)) + attention_flop(a, seq_len, causal);
}

constexpr std::array<std::pair<FlopConvention, std::string_view>, 5> kConventions = {{
    {FlopConvention::full_attention, "full-attention"},
    {FlopConvention::causal_attention, "causal-attention"},
    {FlopConvention::six_n, "6n"},
    {FlopConvention::palm, "palm"},
    {FlopConvention::hardware, "hardware"},
}};

}  // namespace

std::int64_t ParameterCount::total() const {
  return embedding + positions + attention + mlp + norms + head;
}

ParameterCount parameters(const Architecture& a) {
  const Matrices m = matrices(a);
  return {.embedding = a.vocab * a.hidden,
          .positions = a.position_rows * a.hidden,
          .attention = a.layers * (m.attention + attention_biases(a)),
          .mlp = a.layers * (m.mlp + mlp_biases(a)),
          .norms = norm_parameters(a),
          .head = (a.tied_embeddings ? 0 : m.logits) + (a.head_bias ? a.vocab : 0)};
}

std::string_view name_of(FlopConvention convention) {
  for (const auto& [value, name] : kConventions) {
    if (value == convention) return name;
  }
  return "";
}

FlopConvention flop_convention(std::string_view name) {
  std::vector<std::string> valid;
  for (const auto& [value, known] : kConventions) {
    if (known == name) return value;
    valid.emplace_back(known);
  }
  throw InputError("unknown FLOP convention " + in_quotes(name), "", "use one of " + join(valid));
}

Flop flop_per_token(const Architecture& a, std::int64_t seq_len, FlopConvention convention,
                    double recomputed) {
  EXPECT(seq_len > 0 && recomputed >= 0 && recomputed <= 1);
  const double all = 6 * real(parameters(a).total());
  const double logits = 6 * real(matrices(a).logits);
  switch (convention) {
    case FlopConvention::full_attention:
      return Flop(decoder_flop(a, seq_len, false) + logits);
    case FlopConvention::causal_attention:
      return Flop(decoder_flop(a, seq_len, true) + logits);
    case FlopConvention::six_n:
      return Flop(all);
    case FlopConvention::palm:
      return Flop(all + attention_flop(a, seq_len, false));
    case FlopConvention::hardware:
      return Flop(decoder_flop(a, seq_len, false) * (1 + recomputed / 3) + logits);
  }
  return Flop(0);
}

Bytes kv_bytes_per_token(const Architecture& a, Precision precision) {
  return real(2 * a.layers * a.kv_heads * a.head_dim) * element_size(precision);
}

}  // namespace orrery

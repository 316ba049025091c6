// For tests: the weights of an architecture of attention layers, added up from its fields.
#pragma once

#include <cstdint>

#include "catalog/architecture.h"

namespace orrery {

inline std::int64_t test_linear(std::int64_t in, std::int64_t out, bool bias) {
  return in * out + (bias ? out : 0);
}

inline std::int64_t test_attention(const Architecture& a) {
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  return test_linear(a.hidden, q + 2 * kv, a.qkv_bias) + test_linear(q, a.hidden, a.output_bias);
}

inline std::int64_t test_weights(const Architecture& a);

inline std::int64_t test_tower_weights(const Tower& tower) {
  std::int64_t sum = test_weights(tower.stack) + tower.patch * tower.stack.hidden;
  if (tower.shares_embedding) sum -= tower.stack.vocab * tower.stack.hidden;
  for (const auto& map : tower.projector) sum += test_linear(map.in, map.out, map.bias);
  return sum;
}

inline std::int64_t test_weights(const Architecture& a) {
  const std::int64_t norm = a.norm_bias ? 2 * a.hidden : a.hidden;
  std::int64_t sum = (a.vocab + a.position_rows) * a.hidden;
  if (a.has_head && !a.tied_embeddings) sum += a.vocab * a.hidden;
  sum += ((a.final_norm ? 1 : 0) + (a.embedding_norm ? 1 : 0)) * norm;
  for (const LayerRun& run : layer_runs(a)) {
    const bool cross = run.kind.cross_attention;
    const std::int64_t inner = (gated(a.activation) ? 2 : 1) * run.kind.ffn;
    const std::int64_t mlp =
        test_linear(a.hidden, inner, a.mlp_bias) + test_linear(run.kind.ffn, a.hidden, a.mlp_bias);
    const std::int64_t mixers = run.kind.mixer == Mixer::none ? 0 : 1;
    sum += run.count * ((mixers + (cross ? 1 : 0)) * test_attention(a) + mlp +
                        (a.norms_per_layer + (cross ? 1 : 0)) * norm);
  }
  for (const auto& [what, count] : a.extra) sum += count;
  for (const Tower& tower : a.towers) sum += test_tower_weights(tower);
  return sum;
}

}  // namespace orrery

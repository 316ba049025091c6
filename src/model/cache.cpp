#include <algorithm>

#include "model/count.h"

namespace orrery {
namespace {

Bytes bytes(std::int64_t numbers, Precision precision) {
  return static_cast<double>(numbers) * element_size(precision);
}

std::int64_t key_and_value(const Architecture& a) { return 2 * a.kv_heads * a.head_dim; }

// Numbers that a layer keeps of a token.
std::int64_t kept(const Architecture& a, const LayerKind& kind) {
  if (kind.mixer == Mixer::attention) return key_and_value(a);
  if (kind.mixer == Mixer::latent_attention) return a.latent.kv_rank + a.latent.rope_dim;
  return 0;
}

std::int64_t kept_tokens(const LayerKind& kind, std::int64_t tokens) {
  return kind.window > 0 ? std::min(kind.window, tokens) : tokens;
}

std::int64_t kept_of_source(const Architecture& a, const LayerKind& kind) {
  if (!kind.cross_attention || a.towers.empty()) return 0;
  return a.towers.front().tokens_out * key_and_value(a);
}

std::int64_t state(const Architecture& a, const LayerKind& kind) {
  const StateSpace& s = a.state_space;
  const std::int64_t recurrence = s.inner * s.state;
  if (kind.mixer == Mixer::selective_scan) return recurrence + s.inner * s.conv;
  if (kind.mixer != Mixer::dual_scan) return 0;
  return recurrence + (s.inner + 2 * s.groups * s.state) * s.conv;
}

}  // namespace

Bytes kv_bytes_per_token(const Architecture& a, Precision precision) {
  std::int64_t sum = 0;
  for (const LayerRun& run : layer_runs(a)) sum += run.count * kept(a, run.kind);
  return bytes(sum, precision);
}

Bytes kv_bytes(const Architecture& a, std::int64_t tokens, Precision precision) {
  std::int64_t sum = 0;
  for (const LayerRun& run : layer_runs(a)) {
    sum += run.count *
           (kept(a, run.kind) * kept_tokens(run.kind, tokens) + kept_of_source(a, run.kind));
  }
  return bytes(sum, precision);
}

Bytes state_bytes(const Architecture& a, Precision precision) {
  std::int64_t sum = 0;
  for (const LayerRun& run : layer_runs(a)) sum += run.count * state(a, run.kind);
  return bytes(sum, precision);
}

}  // namespace orrery

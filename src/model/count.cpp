#include "model/count.h"

#include "model/layer_weights.h"

namespace orrery {
namespace {

void add_layers(ParameterCount& n, const Architecture& a, const LayerRun& run) {
  const LayerWeights layer = layer_weights(a, run.kind);
  n.attention += run.count * (layer.attention.all() + layer.source.all());
  n.state_space += run.count * layer.state_space.all();
  n.mlp += run.count * layer.mlp.all();
  n.experts += run.count * a.experts.count * layer.expert.all();
  n.routed += run.count * a.experts.top_k * layer.expert.all();
  n.shared_experts += run.count * layer.shared.all();
  n.router += run.count * layer.router.all();
  n.norms += run.count * layer.norms;
}

// Weights of a norm over the hidden width.
std::int64_t hidden_norm(const Architecture& a) { return a.norm_bias ? 2 * a.hidden : a.hidden; }

// A layer like the stack's last, whose input joins a hidden state and an embedding, each normed,
// by one matrix; and a final norm (DeepSeek-V3, arXiv 2412.19437, section 2.2).
std::int64_t prediction_module(const Architecture& a) {
  ParameterCount layer;
  add_layers(layer, a, {layer_runs(a).back().kind, 1});
  return layer.total() + 2 * a.hidden * a.hidden + 3 * hidden_norm(a);
}

std::int64_t tower_parameters(const Tower& tower) {
  const ParameterCount stack = parameters(tower.stack);
  const std::int64_t shared = tower.shares_embedding ? stack.embedding : 0;
  return stack.total() - shared + tower.patch * tower.stack.hidden;
}

std::int64_t projector_parameters(const Tower& tower) {
  std::int64_t sum = 0;
  for (const Tower::Projection& p : tower.projector) sum += (p.in + (p.bias ? 1 : 0)) * p.out;
  return sum;
}

}  // namespace

std::int64_t ParameterCount::total() const {
  std::int64_t sum = embedding + positions + attention + state_space + mlp + experts +
                     shared_experts + router + norms + head + projectors + extra + custom;
  for (const auto& [name, weights] : towers) sum += weights;
  return sum;
}

std::int64_t ParameterCount::active() const {
  std::int64_t beside = projectors + experts - routed;
  for (const auto& [name, weights] : towers) beside += weights;
  return total() - beside;
}

ParameterCount parameters(const Architecture& a) {
  ParameterCount n;
  n.embedding = a.vocab * a.hidden;
  n.positions = a.position_rows * a.hidden;
  for (const CustomLayer& layer : a.custom.layers) {
    n.custom += layer.count * layer.parameters();
  }
  for (const LayerRun& run : layer_runs(a)) add_layers(n, a, run);
  n.norms += ((a.final_norm ? 1 : 0) + (a.embedding_norm ? 1 : 0)) * hidden_norm(a);
  if (a.has_head && !a.tied_embeddings) n.head += a.vocab * a.hidden;
  if (a.head_bias) n.head += a.vocab;
  for (const Tower& tower : a.towers) {
    n.towers.emplace_back(tower.name, tower_parameters(tower));
    n.projectors += projector_parameters(tower);
  }
  for (const auto& [what, weights] : a.extra) n.extra += weights;
  if (a.mtp_layers > 0) n.mtp = a.mtp_layers * prediction_module(a);
  return n;
}

}  // namespace orrery

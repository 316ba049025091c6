#include <cmath>

#include "plan/lowering.h"

namespace orrery {
namespace {

// Writes what stands between the last backward pass and the next step.
class FinishWriter {
 public:
  explicit FinishWriter(Stage& stage)
      : stage_(stage),
        lowering_(stage.lowering),
        graph_(stage.lowering.graph),
        s_(stage.lowering.strategy) {}

  void write(Body& body) {
    if (!lowering_.recipe.overlap_data) {
      for (const LayerState& state : stage_.state.all()) {
        if (state.data->reduces_once() && state.gradients) reduce_all(state, body);
      }
    }
    reduce_tied(body);
    if (lowering_.placement.copies() > 1) reduce_mirrored(body);
    body.wait_for(Event::gradients);
    update(body);
    if (gathers_at_start(stage_)) return;
    for (const LayerState& state : stage_.state.all()) {
      if (state.data->gathers_once()) gather_all(state, body);
    }
  }

 private:
  void reduce_all(const LayerState& state, Body& body) {
    Body inner;
    state.data->reduce(lowering_, inner, state.trained, state.gradients, {});
    body.loop({.count = state.count, .body = {}, .over_layers = true, .order = Order::descending},
              std::move(inner));
  }

  void gather_all(const LayerState& state, Body& body) {
    Body inner;
    state.data->gather(lowering_, inner, state.gather, state.weights, {}, Event::updated);
    body.loop({.count = state.count, .body = {}, .over_layers = true}, std::move(inner));
  }

  // The copies of a tied matrix on two stages share one gradient.
  void reduce_tied(Body& body) {
    const bool first = stage_.state.holds(graph_.embedding);
    if (!graph_.tied_embeddings || first == stage_.state.holds(graph_.head)) return;
    const LayerId layer = first ? graph_.embedding : graph_.head;
    const Layer& kind = graph_.layers[layer];
    const TensorId matrix = first ? embedding_table(kind) : output_matrix(kind);
    if (kind.tensors[matrix].frozen) return;
    const double share =
        stage_.data.shards(Zero::optimizer) ? 1 / static_cast<double>(stage_.data.shard()) : 1.0;
    const double parameters = lowering_.local.elements(kind.tensors[matrix]) * share;
    const CommId comm =
        lowering_.comm(CollectiveOp::all_reduce, GroupKind::embedding,
                       Bytes(parameters * lowering_.recipe.reduce_bytes),
                       lowering_.recipe.reduce_bytes >= 4 ? Precision::fp32 : Precision::bf16);
    body.on_data(comm, stage_.state.gradient(layer, gradient_of(kind, matrix)), {}, Event::computed,
                 Event::gradients);
  }

  // Of the model's two copies, on the stage that holds the same layers.
  void reduce_mirrored(Body& body) {
    for (const LayerState& state : stage_.state.all()) {
      if (!state.gradients) continue;
      const double ranks =
          state.data->shards(Zero::optimizer) ? static_cast<double>(state.data->shard()) : 1.0;
      const double bytes = lowering_.recipe.reduce_bytes;
      const CommId comm = lowering_.comm(CollectiveOp::all_reduce, GroupKind::mirror,
                                         Bytes(state.trained / ranks * bytes),
                                         bytes >= 4 ? Precision::fp32 : Precision::bf16);
      Body inner;
      inner.on_data(comm, state.gradients, {}, Event::computed, Event::gradients);
      body.loop({.count = state.count, .body = {}, .over_layers = true}, std::move(inner));
    }
  }

  // Adam reads the gradient and its own state, writes that state and the weight. On the host it
  // first gets the gradients, and gives back the weights unless these stay there too.
  void update(Body& body) {
    const Recipe& recipe = lowering_.recipe;
    const double count = stage_.state.updated();
    const bool on_host = s_.offload == Offload::optimizer || s_.offload == Offload::parameters;
    if (on_host) body.copy({Bytes(count * recipe.gradient_bytes), true});
    body.update({std::llround(std::ceil(count)),
                 Bytes(count * (recipe.optimizer_bytes + recipe.gradient_bytes)),
                 Bytes(count * (recipe.optimizer_bytes + recipe.weight_bytes)), on_host,
                 on_host && s_.offload_to_nvme});
    if (s_.offload == Offload::optimizer)
      body.fetch({Bytes(count * recipe.weight_bytes), false}, Event::updated);
  }

  Stage& stage_;
  Lowering& lowering_;
  const OpGraph& graph_;
  const Strategy& s_;
};

}  // namespace

bool gathers_at_start(const Stage& stage) {
  return stage.lowering.recipe.overlap_data || stage.data.holds_gathered();
}

void finish_step(Stage& stage, Body& body) { FinishWriter(stage).write(body); }

}  // namespace orrery

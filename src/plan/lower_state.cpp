#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "plan/lowering.h"

namespace orrery {
namespace {

Precision format_of(double bytes) {
  if (bytes >= 4) return Precision::fp32;
  return bytes >= 2 ? Precision::bf16 : Precision::fp8;
}

std::vector<TensorId> parameters_of(const Layer& layer) {
  std::vector<TensorId> found;
  for (const TensorId id : layer.tensors.ids()) {
    if (layer.tensors[id].role == TensorRole::parameter) found.push_back(id);
  }
  return found;
}

// The first parameter that an operator of `kind` reads.
TensorId parameter_of(const Layer& layer, OpKind kind) {
  for (const OpId id : layer.forward) {
    if (layer.ops[id].kind != kind) continue;
    for (const TensorId tensor : layer.ops[id].reads) {
      if (layer.tensors[tensor].role == TensorRole::parameter) return tensor;
    }
  }
  return {};
}

std::vector<TensorId> with_role(const Layer& layer, const std::vector<TensorId>& ids,
                                TensorRole role) {
  std::vector<TensorId> found;
  for (const TensorId id : ids) {
    if (layer.tensors[id].role == role) found.push_back(id);
  }
  return found;
}

}  // namespace

TensorId embedding_table(const Layer& embedding) {
  return parameter_of(embedding, OpKind::embedding);
}
TensorId output_matrix(const Layer& head) { return parameter_of(head, OpKind::matmul); }

// A gradient operator writes the gradients of its forward operator's parameters in their order.
TensorId gradient_of(const Layer& layer, TensorId parameter) {
  TensorId gradient;
  for (const OpId id : layer.backward) {
    const Op& op = layer.ops[id];
    const auto gradients = with_role(layer, op.writes, TensorRole::parameter_gradient);
    if (gradients.empty()) continue;
    const auto parameters = with_role(layer, layer.ops[op.forward].reads, TensorRole::parameter);
    EXPECT(gradients.size() == parameters.size());
    const auto found = std::find(parameters.begin(), parameters.end(), parameter);
    if (found != parameters.end()) gradient = gradients[found - parameters.begin()];
  }
  ENSURE(gradient);
  return gradient;
}

// --- data parallelism --------------------------------------------------------------------------

DataParallel::DataParallel(const Strategy& strategy, const Recipe& recipe)
    : strategy_(strategy),
      recipe_(recipe),
      replicas_(strategy.dp * strategy.cp),
      shard_(strategy.zero == Zero::none ? 1 : shard_ranks(strategy)) {}

bool DataParallel::holds_gathered() const {
  return shards(Zero::weights) && !recipe_.reshard_after_forward && strategy_.pp > 1;
}

bool DataParallel::gathers_once() const { return shards(Zero::optimizer) && !gathers_each_pass(); }

bool DataParallel::reduces_each_backward() const {
  return shards(Zero::gradients) && !holds_gathered();
}

void DataParallel::reduce(Lowering& lowering, Body& body, double parameters, BufferId buffer,
                          BufferId source, std::int64_t layer_shift) const {
  const Bytes size(parameters * recipe_.reduce_bytes);
  const Precision dtype = format_of(recipe_.reduce_bytes);
  if (shard_ > 1) {
    const CommId scatter =
        lowering.comm(CollectiveOp::reduce_scatter, GroupKind::shard, size, dtype);
    body.on_data(scatter, buffer, source, Event::computed, Event::gradients, layer_shift);
  }
  if (replicas_ > shard_) {
    const CommId sum =
        lowering.comm(CollectiveOp::all_reduce, shard_ > 1 ? GroupKind::replica : GroupKind::data,
                      size / static_cast<double>(shard_), dtype);
    body.on_data(sum, buffer, {}, Event::computed, Event::gradients, layer_shift);
  }
}

void DataParallel::gather(Lowering& lowering, Body& body, double parameters, BufferId buffer,
                          BufferId source, Event after) const {
  const Bytes size(parameters * recipe_.gather_bytes);
  const CommId comm = lowering.comm(CollectiveOp::all_gather, GroupKind::shard, size,
                                    format_of(recipe_.gather_bytes));
  body.on_data(comm, buffer, source, after, Event::gathered);
}

// --- what a stage holds ------------------------------------------------------------------------

StageState::StageState(Lowering& lowering, std::int64_t stage, RankClass& ranks)
    : lowering_(lowering), ranks_(ranks), data_(lowering.strategy, lowering.recipe) {
  const OpGraph& graph = lowering.graph;
  std::int64_t layers = 0;
  for (const std::int64_t chunk : lowering.split[stage]) layers += chunk;
  if (stage == 0) add(graph.embedding, 1);
  if (layers > 0) add(graph.body.front().layer, layers);
  if (stage == lowering.strategy.pp - 1) add(graph.head, 1);
}

bool StageState::shared_with_embedding(LayerId layer, TensorId parameter) const {
  const OpGraph& graph = lowering_.graph;
  return graph.tied_embeddings && lowering_.strategy.pp == 1 && layer == graph.head &&
         parameter == output_matrix(graph.layers[layer]);
}

void StageState::add(LayerId id, std::int64_t count) {
  const Layer& layer = lowering_.graph.layers[id];
  const Recipe& recipe = lowering_.recipe;
  std::vector<TensorId> own;
  for (const TensorId parameter : parameters_of(layer)) {
    if (!shared_with_embedding(id, parameter)) own.push_back(parameter);
  }
  LayerState state = {id, count, 0, {}, {}, {}, {}, {}};
  for (const TensorId parameter : own) {
    state.parameters += lowering_.local.elements(layer.tensors[parameter]);
  }
  const auto buffer = [&](const char* what, MemoryTerm term, double bytes, bool sharded) {
    const double ranks = sharded ? static_cast<double>(data_.shard()) : 1.0;
    return ranks_.buffers.push_back({layer.name + " " + what,
                                     term,
                                     Bytes(state.parameters * bytes / ranks),
                                     format_of(bytes),
                                     {}});
  };
  state.weights =
      buffer("weights", MemoryTerm::weights, recipe.weight_bytes, data_.shards(Zero::weights));
  state.gradients = buffer("gradients", MemoryTerm::gradients, recipe.gradient_bytes,
                           data_.reduces_each_backward());
  state.optimizer = buffer("optimizer", MemoryTerm::optimizer, recipe.optimizer_bytes,
                           data_.shards(Zero::optimizer));
  if (data_.shards(Zero::weights)) {
    state.gathered =
        buffer("gathered weights",
               data_.holds_gathered() ? MemoryTerm::weights : MemoryTerm::communication,
               recipe.gather_bytes, false);
  }
  if (data_.reduces_each_backward()) {
    state.bucket = buffer("gradient bucket", MemoryTerm::communication, recipe.reduce_bytes, false);
  }
  add_parts(state, own);
  states_.push_back(state);
}

void StageState::add_parts(LayerState& state, const std::vector<TensorId>& parameters) {
  const Layer& layer = lowering_.graph.layers[state.layer];
  const auto parts = [&](BufferId whole, auto& map, auto key_of) {
    const Buffer all = ranks_.buffers[whole];
    for (const TensorId parameter : parameters) {
      const double share = lowering_.local.elements(layer.tensors[parameter]) / state.parameters;
      map[{state.layer, key_of(parameter)}] = ranks_.buffers.push_back(
          {layer.tensors[parameter].name, all.term, all.size * share, all.dtype, whole});
    }
  };
  parts(state.gathered ? state.gathered : state.weights, weights_, [](TensorId p) { return p; });
  parts(state.bucket ? state.bucket : state.gradients, gradients_,
        [&](TensorId p) { return gradient_of(layer, p); });
}

std::vector<const LayerState*> StageState::used_by(LayerId layer) const {
  const bool borrows = layer == lowering_.graph.head &&
                       shared_with_embedding(layer, output_matrix(lowering_.graph.layers[layer]));
  std::vector<const LayerState*> found;
  for (const LayerState& state : states_) {
    if (state.layer == layer || (borrows && state.layer == lowering_.graph.embedding)) {
      found.push_back(&state);
    }
  }
  return found;
}

BufferId StageState::weight(LayerId layer, TensorId parameter) const {
  if (shared_with_embedding(layer, parameter)) {
    const LayerId embedding = lowering_.graph.embedding;
    return weights_.at({embedding, embedding_table(lowering_.graph.layers[embedding])});
  }
  return weights_.at({layer, parameter});
}

BufferId StageState::gradient(LayerId layer, TensorId gradient) const {
  const auto own = gradients_.find({layer, gradient});
  if (own != gradients_.end()) return own->second;
  const LayerId embedding = lowering_.graph.embedding;
  const Layer& table = lowering_.graph.layers[embedding];
  return gradients_.at({embedding, gradient_of(table, embedding_table(table))});
}

std::int64_t StageState::parameters() const {
  double sum = 0;
  for (const LayerState& state : states_)
    sum += state.parameters * static_cast<double>(state.count);
  return std::llround(sum);
}

void StageState::allocate(Body& body) const {
  for (const LayerState& state : states_) {
    for (const BufferId buffer : {state.weights, state.gradients, state.optimizer}) {
      body.alloc(buffer, state.count);
    }
    if (data_.holds_gathered()) body.alloc(state.gathered, state.count);
  }
}

}  // namespace orrery

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

DataParallel::DataParallel(const Strategy& strategy, const Recipe& recipe, bool experts)
    : strategy_(strategy),
      recipe_(recipe),
      shard_kind_(experts ? GroupKind::expert_shard : GroupKind::shard),
      replica_kind_(experts ? GroupKind::expert_replica : GroupKind::replica),
      replicas_(experts ? strategy.expert_replicas() : strategy.dp * strategy.cp),
      shard_(strategy.zero == Zero::none ? 1
             : experts                   ? expert_shard_ranks(strategy)
                                         : shard_ranks(strategy)) {}

bool DataParallel::holds_gathered() const {
  const bool keeps = !recipe_.reshard_after_forward || splits_backward(strategy_.schedule);
  return shards(Zero::weights) && keeps && strategy_.pp > 1;
}

bool DataParallel::gathers_once() const { return shards(Zero::optimizer) && !gathers_each_pass(); }

bool DataParallel::reduces_each_backward() const {
  return shards(Zero::gradients) && !holds_gathered() && !splits_backward(strategy_.schedule);
}

void DataParallel::reduce(Lowering& lowering, Body& body, double parameters, BufferId buffer,
                          BufferId source, std::int64_t layer_shift) const {
  const Bytes size(parameters * recipe_.reduce_bytes);
  const Precision dtype = format_of(recipe_.reduce_bytes);
  if (shard_ > 1) {
    const CommId scatter = lowering.comm(CollectiveOp::reduce_scatter, shard_kind_, size, dtype);
    body.on_data(scatter, buffer, source, Event::computed, Event::gradients, layer_shift);
  }
  if (replicas_ > shard_) {
    const bool whole = shard_ == 1 && shard_kind_ == GroupKind::shard;
    const CommId sum =
        lowering.comm(CollectiveOp::all_reduce, whole ? GroupKind::data : replica_kind_,
                      size / static_cast<double>(shard_), dtype);
    body.on_data(sum, buffer, {}, Event::computed, Event::gradients, layer_shift);
  }
}

void DataParallel::gather(Lowering& lowering, Body& body, Bytes size, BufferId buffer,
                          BufferId source, Event after) const {
  if (size.value() <= 0) return;
  if (strategy_.offload == Offload::parameters) {
    body.fetch({size / static_cast<double>(shard_), false, strategy_.offload_to_nvme}, after);
    after = Event::copied;
  }
  const CommId comm =
      lowering.comm(CollectiveOp::all_gather, shard_kind_, size, format_of(recipe_.gather_bytes));
  body.on_data(comm, buffer, source, after, Event::gathered);
}

// --- what a stage holds ------------------------------------------------------------------------

StageState::StageState(Lowering& lowering, std::int64_t stage, RankClass& ranks,
                       const DataParallel& data, const DataParallel& experts)
    : lowering_(lowering), ranks_(ranks), data_(data), experts_(experts) {
  std::map<LayerId, std::int64_t> counts;
  std::vector<LayerId> kinds;
  for (const Run& run : lowering.layers_of(stage)) {
    if (counts[run.layer] == 0) kinds.push_back(run.layer);
    counts[run.layer] += run.count;
  }
  holds_both_ends_ = counts.count(lowering.graph.embedding) && counts.count(lowering.graph.head);
  for (const LayerId kind : kinds) add(kind, counts[kind]);
}

bool StageState::shared_with_embedding(LayerId layer, TensorId parameter) const {
  const OpGraph& graph = lowering_.graph;
  return graph.tied_embeddings && holds_both_ends_ && layer == graph.head &&
         parameter == output_matrix(graph.layers[layer]);
}

void StageState::add(LayerId id, std::int64_t count) {
  const Layer& layer = lowering_.graph.layers[id];
  std::vector<TensorId> dense, experts;
  for (const TensorId parameter : parameters_of(layer)) {
    if (shared_with_embedding(id, parameter)) continue;
    (layer.tensors[parameter].split == Split::experts ? experts : dense).push_back(parameter);
  }
  if (!dense.empty()) add(id, count, data_, dense);
  if (!experts.empty()) add(id, count, experts_, experts);
}

Bytes StageState::stored(const Tensor& parameter) const {
  const Recipe& recipe = lowering_.recipe;
  const double each = !parameter.frozen     ? recipe.weight_bytes
                      : parameter.quantised ? recipe.quantised_bytes
                                            : recipe.frozen_bytes;
  return Bytes(lowering_.local.elements(parameter) * each);
}

// Offloading the weights offloads the optimizer too.
MemoryTerm StageState::place_of(MemoryTerm term) const {
  const Offload offload = lowering_.strategy.offload;
  const bool optimizer = offload == Offload::optimizer || offload == Offload::parameters;
  const bool weights = offload == Offload::parameters;
  // Gradients that are scattered in every backward pass follow the optimizer (ZeRO-Offload, arXiv
  // 2101.06840, section 3).
  const bool gradients = optimizer && data_.reduces_each_backward();
  const bool away = (optimizer && term == MemoryTerm::optimizer) ||
                    (gradients && term == MemoryTerm::gradients) ||
                    (weights && term == MemoryTerm::weights);
  return away ? MemoryTerm::host : term;
}

void StageState::add(LayerId id, std::int64_t count, const DataParallel& data,
                     const std::vector<TensorId>& parameters) {
  const Layer& layer = lowering_.graph.layers[id];
  const Recipe& recipe = lowering_.recipe;
  LayerState state = {id, count, &data, 0, 0, {}, {}, {}, {}, {}, {}};
  Bytes weights;
  double copied = 0;  // weights of the layers' matrices, which fp8 keeps a copy of
  for (const TensorId parameter : parameters) {
    const Tensor& tensor = layer.tensors[parameter];
    const double elements = lowering_.local.elements(tensor);
    (tensor.frozen ? state.frozen : state.trained) += elements;
    weights += stored(tensor);
    // No update changes frozen weights: they travel only where each rank holds a part of them.
    if (!tensor.frozen) state.gather += Bytes(elements * recipe.gather_bytes);
    if (tensor.frozen && data.shards(Zero::weights)) state.gather += stored(tensor);
    if (element_size(tensor.dtype) < Bytes(2)) copied += elements;
  }
  const std::string name = layer.name + (&data == &experts_ ? " experts" : "");
  const auto buffer = [&](const char* what, MemoryTerm term, Bytes size, double bytes,
                          bool sharded) {
    const double ranks = sharded ? static_cast<double>(data.shard()) : 1.0;
    return ranks_.buffers.push_back(
        {name + " " + what, place_of(term), size / ranks, format_of(bytes), {}});
  };
  const auto trained = [&](double bytes) { return Bytes(state.trained * bytes); };
  weights += Bytes(copied * recipe.weight_copies);
  state.weights = buffer("weights", MemoryTerm::weights, weights, recipe.weight_bytes,
                         data.shards(Zero::weights));
  if (state.trained > 0) {
    state.gradients = buffer("gradients", MemoryTerm::gradients, trained(recipe.gradient_bytes),
                             recipe.gradient_bytes, data.reduces_each_backward());
    state.optimizer = buffer("optimizer", MemoryTerm::optimizer, trained(recipe.optimizer_bytes),
                             recipe.optimizer_bytes, data.shards(Zero::optimizer));
  }
  if (data.shards(Zero::weights)) {
    state.gathered = buffer("gathered weights",
                            data.holds_gathered() ? MemoryTerm::weights : MemoryTerm::communication,
                            state.gather, recipe.gather_bytes, false);
  }
  if (data.reduces_each_backward() && state.trained > 0) {
    state.bucket = buffer("gradient bucket", MemoryTerm::communication,
                          trained(recipe.reduce_bytes), recipe.reduce_bytes, false);
  }
  add_parts(state, parameters);
  states_.push_back(state);
}

void StageState::add_parts(LayerState& state, const std::vector<TensorId>& parameters) {
  const Layer& layer = lowering_.graph.layers[state.layer];
  const auto part = [&](BufferId whole, const Tensor& tensor, double share) {
    const Buffer all = ranks_.buffers[whole];
    return ranks_.buffers.push_back({tensor.name, all.term, all.size * share, all.dtype, whole});
  };
  double all = 0;  // as they lie in memory
  for (const TensorId id : parameters) all += stored(layer.tensors[id]).value();
  const BufferId weights = state.gathered ? state.gathered : state.weights;
  for (const TensorId id : parameters) {
    const Tensor& tensor = layer.tensors[id];
    weights_[{state.layer, id}] = part(weights, tensor, stored(tensor).value() / all);
  }
  const BufferId gradients = state.bucket ? state.bucket : state.gradients;
  for (const TensorId id : parameters) {
    const Tensor& tensor = layer.tensors[id];
    if (tensor.frozen) continue;
    gradients_[{state.layer, gradient_of(layer, id)}] =
        part(gradients, tensor, lowering_.local.elements(tensor) / state.trained);
  }
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

double StageState::updated() const {
  double sum = 0;
  for (const LayerState& state : states_) {
    const std::int64_t shard = state.data->shards(Zero::optimizer) ? state.data->shard() : 1;
    sum += state.trained * static_cast<double>(state.count) / static_cast<double>(shard);
  }
  return sum;
}

void StageState::allocate(Body& body) const {
  for (const LayerState& state : states_) {
    for (const BufferId buffer : {state.weights, state.gradients, state.optimizer}) {
      if (buffer) body.alloc(buffer, state.count);
    }
    if (state.data->holds_gathered()) body.alloc(state.gathered, state.count);
  }
}

}  // namespace orrery

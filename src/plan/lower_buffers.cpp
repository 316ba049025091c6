#include "plan/lowering.h"

namespace orrery {

BufferId StageBuffers::named(const std::string& name, MemoryTerm term, Bytes size,
                             Precision dtype) {
  const auto [found, is_new] = named_.try_emplace({name, term});
  if (is_new) found->second = ranks_.buffers.push_back({name, term, size, dtype, {}});
  return found->second;
}

BufferId StageBuffers::passing(const std::string& name, const Tensor& x) {
  return named(name, MemoryTerm::activations, lowering_.local.bytes(x), x.dtype);
}

BufferId StageBuffers::passing_gradient(const std::string& name, const Tensor& dx) {
  return named(name + " gradient", MemoryTerm::workspace, lowering_.local.bytes(dx), dx.dtype);
}

BufferId StageBuffers::hidden() {
  const Layer& layer = lowering_.graph.layers[lowering_.graph.body.front().layer];
  return passing(layer.takes, layer.tensors[layer.input]);
}

BufferId StageBuffers::hidden_gradient() {
  const Layer& layer = lowering_.graph.layers[lowering_.graph.body.front().layer];
  return passing_gradient(layer.takes, layer.tensors[layer.input_gradient]);
}

BufferId StageBuffers::held(BufferId content) {
  const Buffer from = ranks_.buffers[content];
  const MemoryTerm term =
      from.term == MemoryTerm::logits ? MemoryTerm::logits : MemoryTerm::activations;
  return named(from.name + " (held)", term, from.size, from.dtype);
}

BufferId StageBuffers::of(LayerId layer_id, TensorId id, bool kept) {
  const Layer& layer = lowering_.graph.layers[layer_id];
  const Tensor& tensor = layer.tensors[id];
  const bool logits = layer_id == lowering_.graph.head && tensor.split == Split::features;
  const bool away =
      lowering_.strategy.offload == Offload::activations && layer.input && layer.output;
  const MemoryTerm term = logits  ? MemoryTerm::logits
                          : !kept ? MemoryTerm::workspace
                          : away  ? MemoryTerm::host
                                  : MemoryTerm::activations;
  const auto [found, is_new] = tensors_.try_emplace({layer_id, id, term});
  if (is_new) {
    const Bytes size = lowering_.local.bytes(tensor) * (kept ? lowering_.recipe.kept : 1.0);
    found->second =
        ranks_.buffers.push_back({layer.name + " " + tensor.name, term, size, tensor.dtype, {}});
  }
  return found->second;
}

}  // namespace orrery

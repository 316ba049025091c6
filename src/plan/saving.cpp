#include "plan/saving.h"

#include <algorithm>
#include <set>

namespace orrery {
namespace {

using Tensors = std::set<TensorId>;

Tensors activations(const Layer& layer, const std::vector<TensorId>& ids) {
  Tensors found;
  for (const TensorId id : ids) {
    if (layer.tensors[id].role == TensorRole::activation) found.insert(id);
  }
  return found;
}

bool meet(const Tensors& set, const std::vector<TensorId>& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](TensorId id) { return set.count(id) > 0; });
}

std::vector<Turn> turns(const std::vector<OpId>& ops, bool recomputed = false) {
  std::vector<Turn> list;
  for (const OpId op : ops) list.push_back({op, recomputed});
  return list;
}

LayerPasses keep_all(const Layer& layer) {
  LayerPasses passes = {turns(layer.forward), turns(layer.backward), {}};
  for (const TensorId tensor : layer.saved()) passes.kept[tensor] = 1;
  return passes;
}

LayerPasses keep_input(const Layer& layer) {
  LayerPasses passes = {turns(layer.forward), turns(layer.forward, true), {{layer.input, 1}}};
  for (const OpId op : layer.backward) passes.backward.push_back({op});
  return passes;
}

// From the scores to the values; empty where attention is fused.
std::vector<OpId> attention_core(const Layer& layer) {
  const auto of_kind = [&](OpKind kind) {
    return std::find_if(layer.forward.begin(), layer.forward.end(),
                        [&](OpId id) { return layer.ops[id].kind == kind; });
  };
  const auto from = of_kind(OpKind::attention_scores), to = of_kind(OpKind::attention_values);
  if (from == layer.forward.end() || to == layer.forward.end()) return {};
  return {from, to + 1};
}

LayerPasses drop_attention_core(const Layer& layer) {
  LayerPasses passes = keep_all(layer);
  const std::vector<OpId> core = attention_core(layer);
  if (core.empty()) return passes;
  Tensors inside;
  for (const OpId id : core) {
    for (const TensorId tensor : activations(layer, layer.ops[id].reads)) {
      if (!inside.count(tensor)) passes.kept[tensor] = 1;
    }
    if (id == core.back()) break;  // its output leaves the core and stays
    for (const TensorId tensor : layer.ops[id].writes) {
      inside.insert(tensor);
      passes.kept.erase(tensor);
    }
  }
  const auto first_use =
      std::find_if(passes.backward.begin(), passes.backward.end(),
                   [&](const Turn& turn) { return meet(inside, layer.ops[turn.op].reads); });
  const std::vector<Turn> again = turns(core, true);
  passes.backward.insert(first_use, again.begin(), again.end());
  return passes;
}

// --- torchtitan's selective(op) ----------------------------------------------------------------

// Whether a matmul's single output is two fused projections: a gated activation halves its width.
bool fused_pair(const Layer& layer, const Op& matmul) {
  for (const OpId id : layer.forward) {
    const Op& op = layer.ops[id];
    if (op.kind == OpKind::activation && op.reads[0] == matmul.writes[0]) {
      return layer.tensors[op.reads[0]].elements == 2 * layer.tensors[op.writes[0]].elements;
    }
  }
  return false;
}

std::map<TensorId, double> outputs_kept_by_operators(const Layer& layer) {
  std::map<TensorId, double> kept = {{layer.input, 1}};
  int products = 0;
  for (const OpId id : layer.forward) {
    const Op& op = layer.ops[id];
    if (op.kind == OpKind::attention || op.kind == OpKind::attention_values) {
      for (const TensorId tensor : op.writes) kept[tensor] = 1;
    }
    if (op.kind != OpKind::matmul) continue;
    if (fused_pair(layer, op)) {
      kept[op.writes[0]] = 0.5;
      products += 2;
      continue;
    }
    for (const TensorId tensor : op.writes) {
      if (++products % 2 == 1) kept[tensor] = 1;
    }
  }
  return kept;
}

// The part of an operator's output that `kept` lacks.
double missing_share(const Layer& layer, const Op& op, const std::map<TensorId, double>& kept) {
  double all = 0, missing = 0;
  for (const TensorId tensor : op.writes) {
    const auto found = kept.find(tensor);
    const double elements = static_cast<double>(layer.tensors[tensor].elements);
    all += elements;
    missing += elements * (found == kept.end() ? 1 : 1 - found->second);
  }
  return missing / all;
}

LayerPasses keep_some_operators(const Layer& layer) {
  LayerPasses passes = {turns(layer.forward), {}, outputs_kept_by_operators(layer)};
  const auto whole = [&](TensorId id) {
    const auto found = passes.kept.find(id);
    return found != passes.kept.end() && found->second == 1;
  };
  Tensors needed;
  for (const TensorId tensor : layer.saved()) {
    if (!whole(tensor)) needed.insert(tensor);
  }
  std::vector<Turn> again;
  for (auto it = layer.forward.rbegin(); it != layer.forward.rend(); ++it) {
    const Op& op = layer.ops[*it];
    if (!meet(needed, op.writes)) continue;
    const double share = op.kind == OpKind::matmul ? missing_share(layer, op, passes.kept) : 1;
    again.push_back({*it, true, share});
    for (const TensorId tensor : activations(layer, op.reads)) {
      if (!whole(tensor)) needed.insert(tensor);
    }
  }
  passes.backward.assign(again.rbegin(), again.rend());
  for (const OpId op : layer.backward) passes.backward.push_back({op});
  return passes;
}

// --- split backward passes ---------------------------------------------------------------------

// Nobody in the layer or before it waits for such an operator.
bool gives_weight_gradients_only(const Layer& layer, const Op& op) {
  return op.pass != Pass::forward &&
         std::all_of(op.writes.begin(), op.writes.end(), [&](TensorId id) {
           return layer.tensors[id].role == TensorRole::parameter_gradient;
         });
}

}  // namespace

SplitBackward split_backward(const Layer& layer, const LayerPasses& passes) {
  SplitBackward split;
  for (const Turn& turn : passes.backward) {
    const Op& op = layer.ops[turn.op];
    if (!gives_weight_gradients_only(layer, op)) {
      split.input.push_back(turn);
      continue;
    }
    split.weights.push_back(turn);
    for (const TensorId id : op.reads) {
      if (layer.tensors[id].role != TensorRole::parameter) split.held.insert(id);
    }
  }
  return split;
}

LayerPasses passes_of(const Layer& layer, Recompute recompute) {
  // Nothing in it or before it is trained: no backward pass would free what is kept.
  if (layer.backward.empty()) return {turns(layer.forward), {}, {}};
  switch (recompute) {
    case Recompute::none:
      return keep_all(layer);
    case Recompute::selective:
      return drop_attention_core(layer);
    case Recompute::operators:
      return keep_some_operators(layer);
    case Recompute::full:
      return keep_input(layer);
  }
  return keep_all(layer);
}

}  // namespace orrery

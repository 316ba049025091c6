#include "model/graph.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace orrery {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

// Of one of attention's two products, over vectors of `width`.
double product_flop(const Attention& shape, std::int64_t width) {
  return 2 * real(width) * attended_pairs(shape) * real(shape.heads * shape.batch);
}

double scores_flop(const Attention& shape) { return product_flop(shape, shape.head_dim); }

double values_flop(const Attention& shape) {
  return product_flop(shape, shape.value_dim ? shape.value_dim : shape.head_dim);
}

double attention_flop(OpKind kind, Pass pass, const Attention& shape) {
  const double forward = (kind == OpKind::attention_values ? 0 : scores_flop(shape)) +
                         (kind == OpKind::attention_scores ? 0 : values_flop(shape));
  return pass == Pass::forward ? forward : 2 * forward;
}

// A lookup touches at most the rows of its table that the tokens name.
double touched(const Op& op, const Tensor& tensor) {
  const bool table =
      tensor.role == TensorRole::parameter || tensor.role == TensorRole::parameter_gradient;
  if (op.kind != OpKind::embedding || !table) return real(tensor.elements);
  const auto& shape = std::get<Elementwise>(op.shape);
  return real(std::min(tensor.elements, shape.rows * shape.width));
}

Bytes bytes_of(const Layer& layer, const Op& op, const std::vector<TensorId>& tensors) {
  Bytes sum;
  for (const TensorId id : tensors) {
    const Tensor& tensor = layer.tensors[id];
    sum += touched(op, tensor) * element_size(tensor.dtype);
  }
  return sum;
}

}  // namespace

std::int64_t OpGraph::depth() const {
  std::int64_t sum = 0;
  for (const Run& run : body) sum += run.count;
  return sum;
}

std::vector<TensorId> Layer::saved() const {
  std::set<TensorId> found;
  for (const OpId id : backward) {
    for (const TensorId tensor : ops[id].reads) {
      if (tensors[tensor].role == TensorRole::activation) found.insert(tensor);
    }
  }
  return {found.begin(), found.end()};
}

Parallel pointwise(Split split) {
  switch (split) {
    case Split::features:
      return Parallel::features;
    case Split::routed:
      return Parallel::routed;
    case Split::routed_features:
      return Parallel::expert_features;
    case Split::none:
    case Split::sequence:
    case Split::experts:
      return Parallel::tokens;
  }
  return Parallel::none;
}

double attended_pairs(const Attention& shape) {
  const double queries = real(shape.queries) / shape.documents;
  const double keys = real(shape.keys) / shape.documents;
  const double window = shape.window > 0 ? std::min(real(shape.window), keys) : keys;
  if (!shape.causal) return shape.documents * queries * window;
  // The integral of min(position, window) over the positions of the queries.
  const auto up_to = [window](double position) {
    const double ramp = std::min(position, window);
    return ramp * ramp / 2 + window * (position - ramp);
  };
  return shape.documents * (up_to(keys) - up_to(keys - queries));
}

Flop model_flop_of(OpKind kind, Pass pass, const Shape& shape) {
  if (const auto* matmul = std::get_if<Matmul>(&shape)) {
    return Flop(2 * real(matmul->m) * real(matmul->n) * real(matmul->k));
  }
  if (const auto* attention = std::get_if<Attention>(&shape)) {
    return Flop(attention_flop(kind, pass, *attention));
  }
  if (const auto* stated = std::get_if<Stated>(&shape)) {
    return Flop(real(stated->rows) * stated->flop);
  }
  return Flop(0);
}

Flop flop_of(OpKind kind, Pass pass, const Shape& shape) {
  const Flop model = model_flop_of(kind, pass, shape);
  const bool repeats_scores = kind == OpKind::attention && pass != Pass::forward;
  return repeats_scores ? model + Flop(scores_flop(std::get<Attention>(shape))) : model;
}

Work work_of(const Layer& layer, OpId id) {
  const Op& op = layer.ops[id];
  if (const auto* stated = std::get_if<Stated>(&op.shape)) {
    return {.flop = flop_of(op.kind, op.pass, op.shape),
            .read = Bytes(real(stated->rows) * stated->bytes),
            .written = Bytes()};
  }
  return {.flop = flop_of(op.kind, op.pass, op.shape),
          .read = bytes_of(layer, op, op.reads),
          .written = bytes_of(layer, op, op.writes)};
}

}  // namespace orrery

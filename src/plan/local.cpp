#include "plan/local.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

std::int64_t divided(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

bool is_parameter(const Tensor& tensor) {
  return tensor.role == TensorRole::parameter || tensor.role == TensorRole::parameter_gradient;
}

bool of_experts(Parallel parallel) {
  return parallel == Parallel::expert_columns || parallel == Parallel::expert_rows ||
         parallel == Parallel::expert_features || parallel == Parallel::routed;
}

bool is_attention(OpKind kind) {
  return kind == OpKind::attention || kind == OpKind::attention_scores ||
         kind == OpKind::attention_values;
}

// A token's copies go to experts on many ranks and as many come from there: each rank computes its
// share of all copies, of the experts that it holds.
Matmul local_experts(Matmul shape, const Op& op, const Strategy& s) {
  const bool weight_gradient = op.pass == Pass::weight_gradient;
  std::int64_t& copies = weight_gradient ? shape.k : shape.m;
  copies = divided(copies * s.etp, s.cp * s.tp);
  shape.groups = divided(shape.groups, s.ep);
  const bool columns = op.parallel == Parallel::expert_columns;
  std::int64_t& split = columns           ? (op.pass == Pass::data_gradient ? shape.k : shape.n)
                        : weight_gradient ? shape.m
                        : op.pass == Pass::data_gradient ? shape.n
                                                         : shape.k;
  split = divided(split, s.etp);
  return shape;
}

Matmul local_matmul(Matmul shape, const Op& op, const Strategy& s) {
  if (of_experts(op.parallel)) return local_experts(shape, op, s);
  const bool weight_gradient = op.pass == Pass::weight_gradient;
  std::int64_t& tokens = weight_gradient ? shape.k : shape.m;
  tokens = divided(tokens, s.cp);
  if (op.parallel == Parallel::columns) {
    std::int64_t& split = op.pass == Pass::data_gradient ? shape.k : shape.n;
    split = divided(split, s.tp);
  } else if (op.parallel == Parallel::rows) {
    std::int64_t& split = weight_gradient                  ? shape.m
                          : op.pass == Pass::data_gradient ? shape.n
                                                           : shape.k;
    split = divided(split, s.tp);
  } else if (op.parallel == Parallel::tokens && s.sequence_parallel) {
    tokens = divided(tokens, s.tp);
  }
  return shape;
}

// Of undivided width the tokens are divided, else the work on each of them.
Stated local_stated(Stated shape, const Op& op, const Strategy& s) {
  shape.rows = divided(shape.rows, s.cp);
  if (op.parallel == Parallel::features) {
    shape.flop /= static_cast<double>(s.tp);
    shape.bytes /= static_cast<double>(s.tp);
  } else if (s.sequence_parallel) {
    shape.rows = divided(shape.rows, s.tp);
  }
  return shape;
}

// Balanced causal context parallelism gives every rank 1/cp of the pairs: as many as `queries`
// would meet in a context of keys (cp + 1) / 2 cp.
Attention local_attention(Attention shape, const Strategy& s) {
  shape.heads = divided(shape.heads, s.tp);
  shape.kv_heads = divided(shape.kv_heads, s.tp);
  if (s.context_kind == ContextKind::ulysses) {
    shape.heads = divided(shape.heads, s.cp);
    shape.kv_heads = divided(shape.kv_heads, s.cp);
    return shape;
  }
  shape.queries = divided(shape.queries, s.cp);
  if (shape.causal && shape.window == 0) shape.keys = shape.keys * (s.cp + 1) / (2 * s.cp);
  return shape;
}

}  // namespace

double Local::elements(const Tensor& tensor) const {
  double elements = static_cast<double>(tensor.elements);
  if (!is_parameter(tensor)) elements /= static_cast<double>(s_.cp);
  return elements / static_cast<double>(parts(tensor)) *
         (tensor.split == Split::routed ? static_cast<double>(s_.etp) : 1.0);
}

// Into how many the tensor and expert ranks divide it.
std::int64_t Local::parts(const Tensor& tensor) const {
  switch (tensor.split) {
    case Split::none:
      return 1;
    case Split::features:
    case Split::routed:
    case Split::routed_features:
      return s_.tp;
    case Split::sequence:
      return s_.sequence_parallel ? s_.tp : 1;
    case Split::experts:
      return s_.ep * s_.etp;
  }
  return 1;
}

Bytes Local::bytes(const Tensor& tensor) const {
  return elements(tensor) * element_size(tensor.dtype);
}

Bytes Local::gathered_bytes(const Tensor& tensor) const {
  const bool divided = tensor.split == Split::sequence && s_.sequence_parallel;
  return bytes(tensor) * (divided ? static_cast<double>(s_.tp) : 1.0);
}

bool Local::spans_tokens(const Op& op, TensorId tensor, const Layer& layer) const {
  const bool divided_matrix = op.parallel == Parallel::columns || op.parallel == Parallel::rows;
  const bool whole = (op.kind == OpKind::matmul && divided_matrix) ||
                     (op.kind == OpKind::embedding && op.parallel == Parallel::vocabulary);
  return s_.tp > 1 && whole && layer.tensors[tensor].split == Split::sequence;
}

Shape Local::shape(const Op& op, double share) const {
  if (const auto* matmul = std::get_if<Matmul>(&op.shape)) {
    Matmul local = local_matmul(*matmul, op, s_);
    if (share < 1) local.n = std::llround(static_cast<double>(local.n) * share);
    return local;
  }
  if (const auto* attention = std::get_if<Attention>(&op.shape)) {
    return local_attention(*attention, s_);
  }
  if (const auto* stated = std::get_if<Stated>(&op.shape)) return local_stated(*stated, op, s_);
  Elementwise local = std::get<Elementwise>(op.shape);
  local.rows = divided(local.rows, s_.cp);
  const bool loss = op.kind == OpKind::cross_entropy;
  if (op.parallel == Parallel::tokens && s_.sequence_parallel) {
    local.rows = divided(local.rows, s_.tp);
  } else if (op.parallel == Parallel::features || (op.parallel == Parallel::vocabulary && loss)) {
    local.width = divided(local.width, s_.tp);
  } else if (op.parallel == Parallel::expert_features) {
    local.rows = divided(local.rows * s_.etp, s_.tp);
    local.width = divided(local.width, s_.etp);
  } else if (op.parallel == Parallel::routed) {
    local.rows = divided(local.rows, s_.tp);  // permuted before or after they travel
  }
  return local;
}

// Of an embedding table only the rows looked up are touched, of divided ones 1/tp on average; keys
// and values come from every context rank.
Bytes Local::moved(const Layer& layer, const Op& op, TensorId id) const {
  const Tensor& tensor = layer.tensors[id];
  if (op.kind == OpKind::embedding && is_parameter(tensor)) {
    const auto& lookup = std::get<Elementwise>(op.shape);
    Tensor rows = tensor;
    rows.elements = std::min(tensor.elements, lookup.rows / s_.cp * lookup.width);
    return bytes(rows);
  }
  if (spans_tokens(op, id, layer)) return gathered_bytes(tensor);
  const Op& forward = op.forward ? layer.ops[op.forward] : op;
  const bool key_or_value =
      is_attention(op.kind) &&
      std::find(forward.reads.begin() + 1, forward.reads.end(), id) != forward.reads.end();
  const bool gathers_keys = key_or_value && s_.context_kind != ContextKind::ulysses;
  return bytes(tensor) * (gathers_keys ? static_cast<double>(s_.cp) : 1.0);
}

Kernel Local::kernel(const Layer& layer, const Turn& turn) const {
  const Op& op = layer.ops[turn.op];
  const bool split = op.parallel == Parallel::columns || op.parallel == Parallel::rows ||
                     op.parallel == Parallel::heads || of_experts(op.parallel) ||
                     (op.parallel == Parallel::tokens && s_.sequence_parallel);
  const double part = turn.share / static_cast<double>(s_.cp * (split ? s_.tp : 1));
  Kernel kernel = {.name = op.name,
                   .kind = op.kind,
                   .pass = op.pass,
                   .shape = shape(op, turn.share),
                   .precision = op.precision,
                   .read = {},
                   .written = {},
                   .flop = flop_of(op.kind, op.pass, op.shape) * part,
                   .model_flop = model_flop_of(op.kind, op.pass, op.shape) * part,
                   .recomputed = turn.recomputed,
                   .dequantised = 0,
                   .of_experts = of_experts(op.parallel)};
  const auto* stated = std::get_if<Stated>(&kernel.shape);
  if (stated) kernel.flop = kernel.model_flop = flop_of(op.kind, op.pass, kernel.shape);
  if (turn.recomputed) kernel.model_flop = {};
  if (stated) {
    kernel.read = Bytes(static_cast<double>(stated->rows) * stated->bytes);
    return kernel;
  }
  if (op.quantised) kernel.dequantised = matrix_elements(layer, op);
  for (const TensorId id : op.reads) kernel.read += moved(layer, op, id);
  for (const TensorId id : op.writes) kernel.written += moved(layer, op, id) * turn.share;
  return kernel;
}

double Local::matrix_elements(const Layer& layer, const Op& op) const {
  double sum = 0;
  for (const TensorId id : op.reads) {
    if (layer.tensors[id].quantised) sum += elements(layer.tensors[id]);
  }
  return sum;
}

Bytes Local::keys_and_values(const Attention& shape, Precision dtype) const {
  const std::int64_t kv_heads = divided(shape.kv_heads, s_.tp);
  const std::int64_t width = shape.head_dim + (shape.value_dim ? shape.value_dim : shape.head_dim);
  return static_cast<double>(shape.batch * shape.keys * kv_heads * width) * element_size(dtype);
}

}  // namespace orrery

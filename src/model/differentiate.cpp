#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "model/build.h"

namespace orrery {
namespace {

// Which of its forward tensors a gradient reads beside dy.
enum class Reads { nothing, inputs, outputs, attention, kept };

Reads reads_of(OpKind kind) {
  switch (kind) {
    case OpKind::norm:
    case OpKind::activation:
    case OpKind::cross_entropy:
    case OpKind::attention_scores:
    case OpKind::attention_values:
    case OpKind::convolution:
    case OpKind::scan:
      return Reads::inputs;
    case OpKind::softmax:
    case OpKind::dropout:
    case OpKind::routing:
      return Reads::outputs;
    case OpKind::attention:
      return Reads::attention;
    case OpKind::matrix_work:
    case OpKind::vector_work:
      return Reads::kept;
    case OpKind::matmul:  // has its own rule
    case OpKind::rotary:
    case OpKind::residual:
    case OpKind::embedding:
    case OpKind::cast:
    case OpKind::dispatch:
    case OpKind::combine:
      return Reads::nothing;
  }
  return Reads::nothing;
}

// Rows of what a forward operator reads.
std::int64_t rows(const Op& op, const Tensor& input) {
  if (const auto* matmul = std::get_if<Matmul>(&op.shape)) return matmul->m;
  if (const auto* attention = std::get_if<Attention>(&op.shape)) {
    return attention->batch * attention->queries;
  }
  if (const auto* stated = std::get_if<Stated>(&op.shape)) return stated->rows;
  const auto& shape = std::get<Elementwise>(op.shape);
  return op.kind == OpKind::dispatch ? input.elements / shape.width : shape.rows;
}

// Walks the forward operators backwards and keeps the gradient of every tensor met so far.
class Differentiator {
 public:
  explicit Differentiator(Layer& layer, bool input_trained)
      : layer_(layer),
        gradient_(layer.tensors.size()),
        first_(layer.tensors.size()),
        needed_(layer.tensors.size(), false),
        format_(layer.tensors.size()) {
    for (const TensorId id : layer.tensors.ids()) {
      const Tensor& tensor = layer.tensors[id];
      needed_[id] = tensor.role == TensorRole::parameter ? !tensor.frozen
                                                         : id == layer.input && input_trained;
      format_[id] = tensor.dtype;
    }
    for (const OpId id : layer.forward) look_at(layer.ops[id]);
  }

  void run() {
    if (layer_.output && needed_[layer_.output]) {
      layer_.output_gradient = add_gradient(layer_.output, layer_.tensors[layer_.output].dtype);
      set(layer_.output, layer_.output_gradient, {});
    }
    for (auto it = layer_.forward.rbegin(); it != layer_.forward.rend(); ++it) back(*it);
    if (layer_.input && needed_[layer_.input]) layer_.input_gradient = of(layer_.input);
  }

 private:
  using Ids = std::vector<TensorId>;

  // What comes of something trained needs a gradient; that of a cast is in the wider format.
  void look_at(const Op& op) {
    const bool needed =
        std::any_of(op.reads.begin(), op.reads.end(), [&](TensorId id) { return needed_[id]; });
    for (const TensorId id : op.writes) {
      needed_[id] = needed;
      if (op.kind == OpKind::cast && !op.reads.empty()) format_[id] = format_[op.reads[0]];
    }
  }

  void back(OpId id) {
    const Op op = layer_.ops[id];  // a copy: the vector grows
    if (needed(op.reads).empty()) return;
    switch (op.kind) {
      case OpKind::matmul:
        return back_matmul(id, op);
      case OpKind::residual:
      case OpKind::cast:
        return pass_on(id, op);
      case OpKind::embedding:
        return back_embedding(id, op);
      default:
        return back_other(id, op);
    }
  }

  // dx = dy W^T and dW = x^T dy, with dy cast once where the matmul is narrower.
  void back_matmul(OpId id, const Op& op) {
    const auto [tokens, n, k, groups] = std::get<Matmul>(op.shape);
    const TensorId x = op.reads[0], weight = op.reads[1];
    const Ids trained = of_role(needed(op.reads), TensorRole::parameter);
    const Ids dy = cast(id, op, gradients(op.writes), n);

    if (needed_[x]) {
      Op dgrad = gradient_op(id, op, ".dgrad", Pass::data_gradient);
      dgrad.shape = Matmul{tokens, k, n, groups};
      dgrad.reads = join(dy, {weight});
      dgrad.quantised = op.quantised;
      const TensorId dx = add_gradient(x, format_[x]);
      dgrad.writes = {dx};
      push(std::move(dgrad));
      contribute(x, dx, id);
    }
    if (trained.empty()) return;
    Op wgrad = gradient_op(id, op, ".wgrad", Pass::weight_gradient);
    wgrad.shape = Matmul{k, n, tokens, groups};
    wgrad.reads = join({x}, dy);
    for (const TensorId parameter : trained) {
      wgrad.writes.push_back(add_gradient(parameter, format_[x]));
    }
    push(std::move(wgrad));
  }

  // dy in the format of the matmul, where that is narrower than what the forward pass cast.
  Ids cast(OpId id, const Op& op, const Ids& dy, std::int64_t width) {
    if (element_size(op.precision) >= element_size(format_[op.reads[0]])) return dy;
    Op cast = gradient_op(id, op, ".dgrad.cast", Pass::data_gradient);
    cast.kind = OpKind::cast;
    cast.shape = Elementwise{std::get<Matmul>(op.shape).m, width, 1};
    cast.parallel = pointwise(layer_.tensors[dy[0]].split);
    cast.precision = layer_.tensors[dy[0]].dtype;
    cast.reads = dy;
    for (const TensorId tensor : dy) {
      Tensor narrow = layer_.tensors[tensor];
      narrow.name += ".cast";
      narrow.dtype = op.precision;
      cast.writes.push_back(layer_.tensors.push_back(std::move(narrow)));
    }
    push(cast);
    return cast.writes;
  }

  // The gradient of the output is that of every input as large: nothing to compute. What enters
  // under another name than what leaves lies elsewhere.
  void pass_on(OpId id, const Op& op) {
    const TensorId dy = of(op.writes[0]);
    for (const TensorId x : of_role(needed(op.reads), TensorRole::activation)) {
      const bool elsewhere = x == layer_.input && layer_.takes != layer_.gives;
      const bool whole = !elsewhere && layer_.tensors[x].elements == layer_.tensors[dy].elements;
      contribute(x, whole ? dy : part(id, op, dy, x), id);
    }
  }

  // Of what was written over some rows of the output.
  TensorId part(OpId id, const Op& op, TensorId dy, TensorId x) {
    Op grad = gradient_op(id, op, ".dgrad", Pass::data_gradient);
    const std::int64_t width = std::get<Elementwise>(op.shape).width;
    grad.shape = Elementwise{layer_.tensors[x].elements / width, width, 0};
    grad.reads = {dy};
    grad.writes = {add_gradient(x, format_[x])};
    const TensorId dx = grad.writes[0];
    push(std::move(grad));
    return dx;
  }

  void back_embedding(OpId id, const Op& op) {
    const Ids trained = of_role(needed(op.reads), TensorRole::parameter);
    if (!trained.empty()) {
      Op wgrad = gradient_op(id, op, ".wgrad", Pass::weight_gradient);
      wgrad.reads = {of(op.writes[0])};
      wgrad.writes = add_gradients(trained);
      push(std::move(wgrad));
    }
    pass_on(id, op);
  }

  void back_other(OpId id, const Op& op) {
    const Ids inputs = of_role(needed(op.reads), TensorRole::activation);
    const Ids trained = of_role(needed(op.reads), TensorRole::parameter);
    Op grad = gradient_op(id, op, ".dgrad", Pass::data_gradient);
    if (auto* stated = std::get_if<Stated>(&grad.shape)) {
      stated->flop *= stated->backward;
      stated->bytes *= stated->backward;
    }
    grad.reads = join(join(saved_by(op), gradients(op.writes)), weights(op));
    const Ids dx = add_gradients(inputs);
    grad.writes = join(dx, add_gradients(trained));
    push(std::move(grad));
    for (std::size_t i = 0; i < inputs.size(); ++i) contribute(inputs[i], dx[i], id);
  }

  Ids saved_by(const Op& op) const {
    const Ids inputs = of_role(op.reads, TensorRole::activation);
    switch (reads_of(op.kind)) {
      case Reads::nothing:
        return {};
      case Reads::inputs:
        return inputs;
      case Reads::outputs:
        return {op.writes.back()};  // of dropout: its mask
      case Reads::attention:
        return join(inputs, op.writes);
      case Reads::kept:
        return op.writes.size() > 1 ? Ids{op.writes.back()} : inputs;
    }
    return {};
  }

  // Those whose values a gradient needs: a bias only shifts.
  Ids weights(const Op& op) const {
    Ids found;
    for (const TensorId id : of_role(op.reads, TensorRole::parameter)) {
      if (layer_.tensors[id].name.ends_with(".weight")) found.push_back(id);
    }
    return found;
  }

  // --- gradients met so far ---------------------------------------------------------------------
  TensorId of(TensorId tensor) const {
    EXPECT(gradient_[tensor]);
    return gradient_[tensor];
  }

  Ids needed(const Ids& tensors) const {
    Ids found;
    for (const TensorId tensor : tensors) {
      if (needed_[tensor]) found.push_back(tensor);
    }
    return found;
  }

  // Of the outputs that a later operator read; others (a mask, statistics) have none.
  Ids gradients(const Ids& outputs) const {
    Ids found;
    for (const TensorId tensor : outputs) {
      if (gradient_[tensor]) found.push_back(gradient_[tensor]);
    }
    return found;
  }

  void set(TensorId tensor, TensorId gradient, OpId from) {
    gradient_[tensor] = gradient;
    first_[tensor] = from;
  }

  // `gradient` reaches `tensor` through `from`; joins what another reader gave before.
  void contribute(TensorId tensor, TensorId gradient, OpId from) {
    if (!gradient_[tensor]) return set(tensor, gradient, from);
    const OpId first = first_[tensor];
    const Tensor& joined = layer_.tensors[tensor];
    const std::int64_t height = rows(layer_.ops[first], joined);
    Op sum = gradient_op(first, layer_.ops[first], "", Pass::data_gradient);
    sum.name = joined.name + ".dsum";
    sum.kind = OpKind::residual;
    sum.shape = Elementwise{height, joined.elements / height, 1};
    sum.parallel = pointwise(joined.split);
    sum.precision = joined.dtype;
    sum.reads = {gradient_[tensor], gradient};
    sum.writes = {add_gradient(tensor, joined.dtype)};
    set(tensor, sum.writes[0], first);
    push(std::move(sum));
  }

  // --- appending --------------------------------------------------------------------------------
  static Op gradient_op(OpId id, const Op& op, const char* suffix, Pass pass) {
    return {.name = op.name + suffix,
            .kind = op.kind,
            .pass = pass,
            .shape = op.shape,
            .parallel = op.parallel,
            .precision = op.precision,
            .reads = {},
            .writes = {},
            .forward = id};
  }

  TensorId add_gradient(TensorId of, Precision format) {
    Tensor gradient = layer_.tensors[of];
    const bool parameter = gradient.role == TensorRole::parameter;
    gradient.name = "d(" + gradient.name + ")";
    gradient.role = parameter ? TensorRole::parameter_gradient : TensorRole::gradient;
    gradient.dtype = format;
    return layer_.tensors.push_back(std::move(gradient));
  }

  Ids add_gradients(const Ids& tensors) {
    Ids added;
    for (const TensorId tensor : tensors) added.push_back(add_gradient(tensor, format_[tensor]));
    return added;
  }

  void push(Op op) { layer_.backward.push_back(layer_.ops.push_back(std::move(op))); }

  Ids of_role(const Ids& tensors, TensorRole role) const {
    Ids found;
    for (const TensorId tensor : tensors) {
      if (layer_.tensors[tensor].role == role) found.push_back(tensor);
    }
    return found;
  }

  static Ids join(Ids a, const Ids& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  Layer& layer_;
  IdVector<TensorId, TensorId> gradient_;  // by forward tensor; none: not met yet
  IdVector<TensorId, OpId> first_;         // the reader that first gave it
  IdVector<TensorId, char> needed_;        // whether something before or in it is trained
  IdVector<TensorId, Precision> format_;   // of its gradient
};

}  // namespace

void differentiate(Layer& layer, bool input_trained) {
  EXPECT(layer.backward.empty());
  Differentiator(layer, input_trained).run();
}

}  // namespace orrery

#include "model/build_parts.h"

namespace orrery {
namespace {

struct FeedForward {
  std::string suffix;  // of the names of its operators
  std::int64_t width;
  bool bias;
  std::int64_t experts = 1;           // of which each row sees one
  std::vector<TensorId> scales = {};  // a number a row, multiplied into the activation
};

TensorId feed_forward(LayerWriter& w, const FeedForward& f, TensorId x) {
  const Architecture& a = w.architecture();
  const GraphOptions& options = w.options();
  const bool routed = f.experts > 1, adapted = options.adapt_feed_forward && !routed;
  const std::string fc1 = "fc1" + f.suffix, active = "activation" + f.suffix;
  const std::string fc2 = "fc2" + f.suffix;
  const TensorId up = w.linear({.name = fc1,
                                .x = x,
                                .width_in = a.hidden,
                                .outputs = {{fc1, gated(a.activation) ? 2 * f.width : f.width}},
                                .parallel = routed ? Parallel::expert_columns : Parallel::columns,
                                .bias = f.bias,
                                .precision = options.matrices,
                                .adapted = adapted,
                                .groups = f.experts})[0];
  const TensorId y =
      w.activation(active, f.width, routed ? Split::routed_features : Split::features);
  std::vector<TensorId> reads = {up};
  reads.insert(reads.end(), f.scales.begin(), f.scales.end());
  w.elementwise(active, OpKind::activation, f.width, kActivationFlop,
                routed ? Parallel::expert_features : Parallel::features, std::move(reads), {y});
  return w.linear({.name = fc2,
                   .x = y,
                   .width_in = f.width,
                   .outputs = {{fc2, a.hidden}},
                   .parallel = routed ? Parallel::expert_rows : Parallel::rows,
                   .bias = f.bias,
                   .precision = options.matrices,
                   .adapted = adapted,
                   .groups = f.experts})[0];
}

// [tokens, top_k]: how much each chosen expert counts for a token.
TensorId routing_weights(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  const Experts& e = a.experts;
  const TensorId logits = w.linear({.name = "router",
                                    .x = x,
                                    .width_in = a.hidden,
                                    .outputs = {{"router", e.count}},
                                    .parallel = Parallel::tokens,
                                    .bias = e.router_bias,
                                    .precision = w.options().compute,
                                    .written = Precision::fp32})[0];
  std::vector<TensorId> reads = {logits};
  // Shifts the choice alone (arXiv 2408.15664); nothing flows back into it.
  if (e.correction_bias) reads.push_back(w.untrained("routing.bias", e.count, Precision::fp32));
  const TensorId weights = w.activation("routing", e.top_k, Split::sequence, Precision::fp32);
  w.elementwise("routing", OpKind::routing, e.count, kSoftmaxFlop, Parallel::tokens,
                std::move(reads), {weights});
  return weights;
}

TensorId routed_experts(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  const Experts& e = a.experts;
  const TensorId weights = routing_weights(w, x);
  const TensorId copies = w.activation("dispatch", a.hidden, Split::routed);
  w.elementwise("dispatch", OpKind::dispatch, a.hidden, 0, Parallel::routed, {x}, {copies});
  const TensorId y = feed_forward(w,
                                  {.suffix = ".experts",
                                   .width = e.width,
                                   .bias = e.bias,
                                   .experts = e.count,
                                   .scales = {weights}},
                                  copies);
  const TensorId sum = w.activation("combine", a.hidden, Split::sequence);
  w.elementwise("combine", OpKind::combine, a.hidden, 1, Parallel::routed, {y}, {sum});
  return sum;
}

TensorId shared_experts(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  const Experts& e = a.experts;
  const TensorId y =
      feed_forward(w, {.suffix = ".shared", .width = e.shared_width, .bias = e.bias}, x);
  if (!e.shared_gate) return y;
  const TensorId gate = w.linear({.name = "gate.shared",
                                  .x = x,
                                  .width_in = a.hidden,
                                  .outputs = {{"gate.shared", 1}},
                                  .parallel = Parallel::tokens,
                                  .precision = w.options().compute})[0];
  const TensorId out = w.activation("gated.shared", a.hidden, Split::sequence);
  w.elementwise("gated.shared", OpKind::activation, a.hidden, 1, Parallel::tokens, {y, gate},
                {out});
  return out;
}

}  // namespace

TensorId feed_forward_branch(LayerWriter& w, const LayerKind& kind, TensorId x) {
  const Architecture& a = w.architecture();
  const auto dense = [&] {
    return feed_forward(w, {.suffix = "", .width = kind.ffn, .bias = a.mlp_bias}, x);
  };
  if (!kind.experts) return dense();
  TensorId sum = routed_experts(w, x);
  if (a.experts.shared_width > 0) sum = w.residual("sum.shared", sum, shared_experts(w, x));
  if (kind.ffn > 0) sum = w.residual("sum.dense", sum, dense());
  return sum;
}

}  // namespace orrery

#include <algorithm>

#include "model/build_parts.h"

namespace orrery {
namespace {

constexpr double kRotaryFlop = 3;

struct Heads {
  TensorId q, k, v;
  std::int64_t q_width, k_width;
};

// A norm over head_dim or a rotation, of queries and keys in one kernel.
Heads on_queries_and_keys(LayerWriter& w, const std::string& name, OpKind kind, double flop,
                          Heads in, const std::vector<TensorId>& more_reads) {
  Heads out = in;
  out.q = w.activation(name + ".q", in.q_width, Split::features);
  out.k = w.activation(name + ".k", in.k_width, Split::features);
  std::vector<TensorId> reads = {in.q, in.k};
  reads.insert(reads.end(), more_reads.begin(), more_reads.end());
  w.elementwise(name, kind, in.q_width + in.k_width, flop, Parallel::features, std::move(reads),
                {out.q, out.k});
  return out;
}

Heads qk_norm(LayerWriter& w, const Heads& in) {
  const Architecture& a = w.architecture();
  std::vector<TensorId> parameters;
  for (const char* part : {"q", "k"}) {
    const std::string name = std::string("qk_norm.") + part;
    parameters.push_back(
        w.parameter(name + ".weight", a.head_dim, w.options().compute, Split::none));
    if (!a.norm_bias) continue;
    parameters.push_back(w.parameter(name + ".bias", a.head_dim, w.options().compute, Split::none));
  }
  return on_queries_and_keys(w, "qk_norm", OpKind::norm, kNormFlop, in, parameters);
}

Heads queries_keys_values(LayerWriter& w, const LayerKind& kind, TensorId x) {
  const Architecture& a = w.architecture();
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const std::vector<TensorId> qkv = w.linear({.name = "qkv",
                                              .x = x,
                                              .width_in = a.hidden,
                                              .outputs = {{"q", q}, {"k", kv}, {"v", kv}},
                                              .parallel = Parallel::columns,
                                              .bias = a.qkv_bias,
                                              .precision = w.options().matrices,
                                              .adapted = w.options().adapt_attention});
  Heads heads = {qkv[0], qkv[1], qkv[2], q, kv};
  if (a.qk_norm) heads = qk_norm(w, heads);
  if (a.positions == Positions::rotary && kind.rotary) {
    heads = on_queries_and_keys(w, "rotary", OpKind::rotary, kRotaryFlop, heads, {});
  }
  return heads;
}

void attention_op(LayerWriter& w, const std::string& name, OpKind kind, const Attention& shape,
                  std::vector<TensorId> reads, std::vector<TensorId> writes) {
  w.op({.name = name,
        .kind = kind,
        .pass = Pass::forward,
        .shape = shape,
        .parallel = Parallel::heads,
        .precision = w.options().compute,
        .reads = std::move(reads),
        .writes = std::move(writes),
        .forward = {}});
}

// Which pairs a layer's kernel computes; the heads are filled in by the caller.
Attention visible_pairs(const LayerKind& kind, const Architecture& a, const GraphOptions& options) {
  Attention shape = {.batch = options.micro_batch,
                     .heads = a.heads,
                     .kv_heads = a.kv_heads,
                     .head_dim = a.head_dim,
                     .queries = options.seq_len,
                     .keys = options.seq_len,
                     .causal = options.causal && a.causal,
                     .window = kind.window < options.seq_len ? kind.window : 0,
                     .documents = options.documents};
  if (kind.chunked && shape.window > 0) {
    shape.documents = std::max(
        shape.documents, static_cast<double>(options.seq_len) / static_cast<double>(shape.window));
    shape.window = 0;
  }
  return shape;
}

std::int64_t value_width(const Attention& shape) {
  return shape.heads * (shape.value_dim ? shape.value_dim : shape.head_dim);
}

// One number a head that the softmax's sum starts with; latent attention has none.
std::vector<TensorId> with_sinks(LayerWriter& w, const Attention& shape,
                                 std::vector<TensorId> reads) {
  if (!w.architecture().attention_sinks || shape.value_dim > 0) return reads;
  reads.push_back(
      w.parameter("sinks.weight", w.architecture().heads, w.options().compute, Split::features));
  return reads;
}

TensorId fused_attention(LayerWriter& w, const Attention& shape, const Heads& in) {
  const TensorId o = w.activation("attention", value_width(shape), Split::features);
  const TensorId statistics =
      w.activation("attention.statistics", shape.heads, Split::features, Precision::fp32);
  attention_op(w, "attention", OpKind::attention, shape, with_sinks(w, shape, {in.q, in.k, in.v}),
               {o, statistics});
  return o;
}

TensorId unfused_attention(LayerWriter& w, const Attention& shape, const Heads& in) {
  Attention every_pair = shape;
  every_pair.causal = false;
  every_pair.window = 0;
  every_pair.documents = 1;
  const std::int64_t width = shape.heads * shape.keys;  // of the scores of a token
  const TensorId scores = w.activation("scores", width, Split::features);
  attention_op(w, "scores", OpKind::attention_scores, every_pair, {in.q, in.k}, {scores});
  const TensorId weights = w.activation("softmax", width, Split::features);
  w.elementwise("softmax", OpKind::softmax, width, kSoftmaxFlop, Parallel::features,
                with_sinks(w, shape, {scores}), {weights});
  const TensorId kept = w.dropout("softmax_dropout", weights, width, Split::features);
  const TensorId o = w.activation("values", value_width(shape), Split::features);
  attention_op(w, "values", OpKind::attention_values, every_pair, {kept, in.v}, {o});
  return o;
}

// Queries, keys and values to the layer's output.
TensorId attend(LayerWriter& w, const Attention& shape, const Heads& heads) {
  const Architecture& a = w.architecture();
  const TensorId o = w.options().flash_attention ? fused_attention(w, shape, heads)
                                                 : unfused_attention(w, shape, heads);
  return w.linear({.name = "proj",
                   .x = o,
                   .width_in = value_width(shape),
                   .outputs = {{"proj", a.hidden}},
                   .parallel = Parallel::rows,
                   .bias = a.output_bias,
                   .precision = w.options().matrices,
                   .adapted = w.options().adapt_attention})[0];
}

// --- latent attention --------------------------------------------------------------------------

LayerWriter::Linear latent_matrix(const LayerWriter& w, const std::string& name, TensorId x,
                                  std::int64_t width_in, Parallel parallel) {
  return {.name = name,
          .x = x,
          .width_in = width_in,
          .outputs = {},
          .parallel = parallel,
          // DeepSeek's code has a bias on what goes down alone.
          .bias = w.architecture().qkv_bias && parallel == Parallel::tokens,
          .precision = w.options().matrices,
          .adapted = w.options().adapt_attention};
}

TensorId latent_queries(LayerWriter& w, TensorId x, std::int64_t width) {
  const Architecture& a = w.architecture();
  const std::int64_t rank = a.latent.q_rank;
  if (rank > 0) {
    LayerWriter::Linear down = latent_matrix(w, "q_down", x, a.hidden, Parallel::tokens);
    down.outputs = {{"q_down", rank}};
    x = w.norm("q_norm", w.linear(down)[0], rank, false);
  }
  LayerWriter::Linear up =
      latent_matrix(w, rank > 0 ? "q_up" : "q", x, rank > 0 ? rank : a.hidden, Parallel::columns);
  up.outputs = {{"q", width}};
  return w.linear(up)[0];
}

// Keys are a part of each head, from the latent, and a rotated part that all heads share.
Heads latent_heads(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  const LatentAttention& l = a.latent;
  const std::int64_t width = a.heads * (l.nope_dim + l.rope_dim);
  const TensorId q = latent_queries(w, x, width);
  LayerWriter::Linear down = latent_matrix(w, "kv_down", x, a.hidden, Parallel::tokens);
  down.outputs = {{"kv_down", l.kv_rank}, {"k_rope", l.rope_dim}};
  const std::vector<TensorId> low = w.linear(down);
  const TensorId normed = w.norm("kv_norm", low[0], l.kv_rank, false);
  LayerWriter::Linear up = latent_matrix(w, "kv_up", normed, l.kv_rank, Parallel::columns);
  up.outputs = {{"k", a.heads * l.nope_dim}, {"v", a.heads * l.value_dim}};
  const std::vector<TensorId> high = w.linear(up);
  return on_queries_and_keys(w, "rotary", OpKind::rotary, kRotaryFlop,
                             {q, high[0], high[1], width, width}, {low[1]});
}

}  // namespace

TensorId attention_branch(LayerWriter& w, const LayerKind& kind, TensorId x) {
  const Heads heads = queries_keys_values(w, kind, x);
  return attend(w, visible_pairs(kind, w.architecture(), w.options()), heads);
}

TensorId latent_attention_branch(LayerWriter& w, const LayerKind& kind, TensorId x) {
  const LatentAttention& l = w.architecture().latent;
  Attention shape = visible_pairs(kind, w.architecture(), w.options());
  shape.kv_heads = shape.heads;
  shape.head_dim = l.nope_dim + l.rope_dim;
  shape.value_dim = l.value_dim;
  return attend(w, shape, latent_heads(w, x));
}

}  // namespace orrery

#include "model/build.h"

#include "core/error.h"
#include "model/layer_writer.h"

namespace orrery {
namespace {

// Vector operations an element, as the formulas read (tanh and exp counted as one).
constexpr double kActivationFlop = 8, kRotaryFlop = 3, kSoftmaxFlop = 5, kLossFlop = 5;

std::int64_t vocabulary(const Architecture& a, const GraphOptions& options) {
  return options.padded_vocab ? options.padded_vocab : a.vocab;
}

Layer embedding_layer(const Architecture& a, const GraphOptions& options) {
  LayerWriter w("embedding", a, options);
  const TensorId table = w.parameter("embedding.weight", vocabulary(a, options) * a.hidden,
                                     options.compute, Split::features);
  TensorId x = w.activation("embedding", a.hidden, Split::sequence);
  w.elementwise("embedding", OpKind::embedding, a.hidden, 0, Parallel::vocabulary, {table}, {x});
  if (a.position_rows > 0) {
    const TensorId rows =
        w.parameter("positions.weight", a.position_rows * a.hidden, options.compute, Split::none);
    const TensorId y = w.activation("positions", a.hidden, Split::sequence);
    w.elementwise("positions", OpKind::embedding, a.hidden, 1, Parallel::tokens, {x, rows}, {y});
    x = y;
  }
  if (a.embedding_norm) x = w.norm("norm", x);
  return w.finish(w.dropout("dropout", x, a.hidden, Split::sequence));
}

struct Heads {
  TensorId q, k, v;
};

// A norm over head_dim or a rotation, of queries and keys in one kernel.
Heads on_queries_and_keys(LayerWriter& w, const Architecture& a, const std::string& name,
                          OpKind kind, double flop, Heads in, std::vector<TensorId> parameters) {
  const std::int64_t q_width = a.heads * a.head_dim, k_width = a.kv_heads * a.head_dim;
  const Heads out = {w.activation(name + ".q", q_width, Split::features),
                     w.activation(name + ".k", k_width, Split::features), in.v};
  std::vector<TensorId> reads = {in.q, in.k};
  reads.insert(reads.end(), parameters.begin(), parameters.end());
  w.elementwise(name, kind, q_width + k_width, flop, Parallel::features, std::move(reads),
                {out.q, out.k});
  return out;
}

Heads qk_norm(LayerWriter& w, const Architecture& a, const GraphOptions& options, Heads in) {
  std::vector<TensorId> parameters;
  for (const char* part : {"q", "k"}) {
    const std::string name = std::string("qk_norm.") + part;
    parameters.push_back(w.parameter(name + ".weight", a.head_dim, options.compute, Split::none));
    if (!a.norm_bias) continue;
    parameters.push_back(w.parameter(name + ".bias", a.head_dim, options.compute, Split::none));
  }
  return on_queries_and_keys(w, a, "qk_norm", OpKind::norm, kNormFlop, in, std::move(parameters));
}

Heads queries_keys_values(LayerWriter& w, const Architecture& a, const GraphOptions& options,
                          TensorId x) {
  const std::vector<TensorId> qkv = w.linear({.name = "qkv",
                                              .x = x,
                                              .width_in = a.hidden,
                                              .outputs = {{"q", a.heads * a.head_dim},
                                                          {"k", a.kv_heads * a.head_dim},
                                                          {"v", a.kv_heads * a.head_dim}},
                                              .parallel = Parallel::columns,
                                              .bias = a.qkv_bias,
                                              .precision = options.matrices});
  Heads heads = {qkv[0], qkv[1], qkv[2]};
  if (a.qk_norm) heads = qk_norm(w, a, options, heads);
  if (a.positions == Positions::rotary) {
    heads = on_queries_and_keys(w, a, "rotary", OpKind::rotary, kRotaryFlop, heads, {});
  }
  return heads;
}

void attention_op(LayerWriter& w, const GraphOptions& options, const std::string& name, OpKind kind,
                  const Attention& shape, std::vector<TensorId> reads,
                  std::vector<TensorId> writes) {
  w.op({.name = name,
        .kind = kind,
        .pass = Pass::forward,
        .shape = shape,
        .parallel = Parallel::heads,
        .precision = options.compute,
        .reads = std::move(reads),
        .writes = std::move(writes),
        .forward = {}});
}

Attention attention_shape(const Architecture& a, const GraphOptions& options) {
  const std::int64_t window = a.sliding_window < options.seq_len ? a.sliding_window : 0;
  return {.batch = options.micro_batch,
          .heads = a.heads,
          .kv_heads = a.kv_heads,
          .head_dim = a.head_dim,
          .queries = options.seq_len,
          .keys = options.seq_len,
          .causal = options.causal,
          .window = window};
}

TensorId fused_attention(LayerWriter& w, const Architecture& a, const GraphOptions& options,
                         const Heads& in) {
  const TensorId o = w.activation("attention", a.heads * a.head_dim, Split::features);
  const TensorId statistics =
      w.activation("attention.statistics", a.heads, Split::features, Precision::fp32);
  attention_op(w, options, "attention", OpKind::attention, attention_shape(a, options),
               {in.q, in.k, in.v}, {o, statistics});
  return o;
}

TensorId unfused_attention(LayerWriter& w, const Architecture& a, const GraphOptions& options,
                           const Heads& in) {
  Attention every_pair = attention_shape(a, options);
  every_pair.causal = false;
  every_pair.window = 0;
  const std::int64_t width = a.heads * options.seq_len;  // of the scores of a token
  const TensorId scores = w.activation("scores", width, Split::features);
  attention_op(w, options, "scores", OpKind::attention_scores, every_pair, {in.q, in.k}, {scores});
  const TensorId weights = w.activation("softmax", width, Split::features);
  w.elementwise("softmax", OpKind::softmax, width, kSoftmaxFlop, Parallel::features, {scores},
                {weights});
  const TensorId kept = w.dropout("softmax_dropout", weights, width, Split::features);
  const TensorId o = w.activation("values", a.heads * a.head_dim, Split::features);
  attention_op(w, options, "values", OpKind::attention_values, every_pair, {kept, in.v}, {o});
  return o;
}

// Queries, keys and values to the branch that residual1 adds.
TensorId attention_branch(LayerWriter& w, const Architecture& a, const GraphOptions& options,
                          TensorId x) {
  const Heads heads = queries_keys_values(w, a, options, x);
  const TensorId o = options.flash_attention ? fused_attention(w, a, options, heads)
                                             : unfused_attention(w, a, options, heads);
  const TensorId y = w.linear({.name = "proj",
                               .x = o,
                               .width_in = a.heads * a.head_dim,
                               .outputs = {{"proj", a.hidden}},
                               .parallel = Parallel::rows,
                               .bias = a.output_bias,
                               .precision = options.matrices})[0];
  return w.dropout("dropout1", y, a.hidden, Split::sequence);
}

// The feed-forward network: the branch that residual2 adds.
TensorId mlp_branch(LayerWriter& w, const Architecture& a, const GraphOptions& options,
                    TensorId x) {
  const std::int64_t width = gated(a.activation) ? 2 * a.ffn : a.ffn;
  const TensorId up = w.linear({.name = "fc1",
                                .x = x,
                                .width_in = a.hidden,
                                .outputs = {{"fc1", width}},
                                .parallel = Parallel::columns,
                                .bias = a.mlp_bias,
                                .precision = options.matrices})[0];
  const TensorId active = w.activation("activation", a.ffn, Split::features);
  w.elementwise("activation", OpKind::activation, a.ffn, kActivationFlop, Parallel::features, {up},
                {active});
  const TensorId down = w.linear({.name = "fc2",
                                  .x = active,
                                  .width_in = a.ffn,
                                  .outputs = {{"fc2", a.hidden}},
                                  .parallel = Parallel::rows,
                                  .bias = a.mlp_bias,
                                  .precision = options.matrices})[0];
  return w.dropout("dropout2", down, a.hidden, Split::sequence);
}

Layer decoder_layer(const Architecture& a, const GraphOptions& options) {
  LayerWriter w("decoder", a, options);
  const TensorId x = w.input();
  const TensorId normed = w.norm("norm1", x);
  const TensorId sum = w.residual("residual1", x, attention_branch(w, a, options, normed));
  const bool shared_norm = a.norms_per_layer == 1;
  const TensorId mlp_input = shared_norm ? normed : w.norm("norm2", a.parallel_block ? x : sum);
  return w.finish(w.residual("residual2", sum, mlp_branch(w, a, options, mlp_input)));
}

Layer head_layer(const Architecture& a, const GraphOptions& options) {
  LayerWriter w("head", a, options);
  const std::int64_t vocab = vocabulary(a, options);
  TensorId x = w.input();
  if (a.final_norm) x = w.norm("norm", x);
  const TensorId logits = w.linear({.name = "logits",
                                    .x = x,
                                    .width_in = a.hidden,
                                    .outputs = {{"logits", vocab}},
                                    .parallel = Parallel::columns,
                                    .bias = a.head_bias,
                                    .precision = options.compute})[0];
  const TensorId loss = w.activation("loss", 1, Split::none, Precision::fp32);
  w.elementwise("cross_entropy", OpKind::cross_entropy, vocab, kLossFlop, Parallel::vocabulary,
                {logits}, {loss});
  return w.finish({});
}

void expect_valid(const Architecture& a, const GraphOptions& options) {
  EXPECT(options.micro_batch > 0 && options.seq_len > 0);
  EXPECT(a.layers > 0 && a.hidden > 0 && a.ffn > 0 && a.vocab > 0 && a.head_dim > 0);
  EXPECT(a.kv_heads > 0 && a.heads % a.kv_heads == 0);
  EXPECT(a.norms_per_layer == 2 || (a.norms_per_layer == 1 && a.parallel_block));
  EXPECT(options.padded_vocab == 0 || options.padded_vocab >= a.vocab);
}

}  // namespace

std::string unlowered(const Architecture& architecture) {
  return architecture.runs.empty() && architecture.towers.empty() ? "" : "not supported yet";
}

OpGraph training_graph(const Architecture& architecture, const GraphOptions& options) {
  expect_valid(architecture, options);
  OpGraph graph{.layers = {},
                .front = {},
                .body = {},
                .back = {},
                .embedding = {},
                .head = {},
                .batch = options.micro_batch,
                .seq_len = options.seq_len,
                .hidden = architecture.hidden,
                .tied_embeddings = architecture.tied_embeddings};
  graph.embedding = graph.layers.push_back(embedding_layer(architecture, options));
  const LayerId decoder = graph.layers.push_back(decoder_layer(architecture, options));
  graph.head = graph.layers.push_back(head_layer(architecture, options));
  graph.front = {{graph.embedding, 1}};
  graph.body = {{decoder, architecture.layers}};
  graph.back = {{graph.head, 1}};
  return graph;
}

}  // namespace orrery

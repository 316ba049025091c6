#include "model/build.h"

#include <algorithm>

#include "core/error.h"
#include "model/build_parts.h"

namespace orrery {
namespace {

constexpr double kLossFlop = 5;

std::int64_t vocabulary(const Architecture& a, const GraphOptions& options) {
  return options.padded_vocab ? options.padded_vocab : a.vocab;
}

// Of the embedding and the head.
WeightState outer_weights(const GraphOptions& options) {
  const bool frozen = options.frozen && !options.train_embeddings;
  return frozen ? WeightState::frozen : WeightState::trained;
}

bool features_trained(const GraphOptions& options) {
  return !options.frozen_towers || !options.frozen_projector;
}

// A tower's features take the place of as many tokens.
TensorId with_features(LayerWriter& w, const Tower& tower, TensorId x) {
  const std::int64_t hidden = w.architecture().hidden;
  const TensorId features = w.input(feature_tokens(tower, w.options()) * hidden);
  const TensorId y = w.activation("features", hidden, Split::sequence);
  w.elementwise("features", OpKind::residual, hidden, 0, Parallel::tokens, {x, features}, {y});
  return y;
}

// What enters a model without a vocabulary is there already.
Layer source_layer(const Architecture& a, const GraphOptions& options) {
  LayerWriter w("embedding", a, options, WeightState::frozen);
  const TensorId x = w.activation("input", a.hidden, Split::sequence);
  w.elementwise("input", OpKind::embedding, 0, 0, Parallel::tokens, {}, {x});
  return w.finish(x);
}

Layer embedding_layer(const Architecture& a, const GraphOptions& options) {
  LayerWriter w("embedding", a, options, outer_weights(options));
  const TensorId table = w.parameter("embedding.weight", vocabulary(a, options) * a.hidden,
                                     options.compute, Split::features);
  TensorId x = w.activation("embedding", a.hidden, Split::sequence);
  w.elementwise("embedding", OpKind::embedding, a.hidden, 0, Parallel::vocabulary, {table}, {x});
  if (!a.towers.empty()) {
    w.takes(a.towers[0].name + " features");
    x = with_features(w, a.towers[0], x);
  }
  x = add_positions(w, x);
  if (a.embedding_norm) x = w.norm("norm", x);
  x = w.dropout("dropout", x, a.hidden, Split::sequence);
  return w.finish(x, features_trained(options));
}

Layer head_layer(const Architecture& a, const GraphOptions& options) {
  LayerWriter w("head", a, options, outer_weights(options));
  const std::int64_t vocab = vocabulary(a, options);
  TensorId x = w.input();
  if (a.final_norm) x = w.norm("norm", x);
  const TensorId loss = w.activation("loss", 1, Split::none, Precision::fp32);
  if (!a.has_head) {  // the task's own: a number made of each token's output
    w.elementwise("loss", OpKind::activation, a.hidden, kLossFlop, Parallel::tokens, {x}, {loss});
    return w.finish({}, a.custom.trained);
  }
  const TensorId logits = w.linear({.name = "logits",
                                    .x = x,
                                    .width_in = a.hidden,
                                    .outputs = {{"logits", vocab}},
                                    .parallel = Parallel::columns,
                                    .bias = a.head_bias,
                                    .precision = options.compute})[0];
  w.elementwise("cross_entropy", OpKind::cross_entropy, vocab, kLossFlop, Parallel::vocabulary,
                {logits}, {loss});
  return w.finish({});
}

TensorId mixer_branch(LayerWriter& w, const LayerKind& kind, TensorId x) {
  switch (kind.mixer) {
    case Mixer::attention:
      return attention_branch(w, kind, x);
    case Mixer::latent_attention:
      return latent_attention_branch(w, kind, x);
    case Mixer::selective_scan:
      return selective_scan_branch(w, x);
    case Mixer::dual_scan:
      return dual_scan_branch(w, x);
    case Mixer::none:
      break;
  }
  EXPECT(false);
  return {};
}

// What the residual stream gains from a branch; some families norm it first (Gemma 2).
TensorId add_branch(LayerWriter& w, const std::string& which, TensorId x, TensorId branch) {
  const Architecture& a = w.architecture();
  if (a.norms_per_layer == 4) branch = w.norm("post_norm" + which, branch);
  branch = w.dropout("dropout" + which, branch, a.hidden, Split::sequence);
  return w.residual("residual" + which, x, branch);
}

void expect_valid(const Architecture& a, const LayerKind& kind) {
  if (kind.mixer == Mixer::attention) {
    EXPECT(a.head_dim > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0);
  }
  const bool feeds_forward = kind.ffn > 0 || kind.experts, mixes = kind.mixer != Mixer::none;
  EXPECT(mixes || feeds_forward);
  EXPECT(a.norms_per_layer > 1 || a.parallel_block || !(mixes && feeds_forward));
  EXPECT(!kind.experts || (a.experts.count > 1 && a.experts.top_k > 0 && a.experts.width > 0));
}

void expect_valid(const Architecture& a, const GraphOptions& options) {
  EXPECT(options.micro_batch > 0 && options.seq_len > 0);
  EXPECT(a.layers > 0 && a.hidden > 0);
  EXPECT(a.custom || a.norms_per_layer == 1 || a.norms_per_layer == 2 || a.norms_per_layer == 4);
  EXPECT(options.padded_vocab == 0 || options.padded_vocab >= a.vocab);
  EXPECT(unlowered(a).empty());
}

bool attends_across(const LayerRun& run) { return run.kind.cross_attention; }

}  // namespace

TensorId add_positions(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  if (a.position_rows == 0) return x;
  const TensorId rows =
      w.parameter("positions.weight", a.position_rows * a.hidden, w.options().compute, Split::none);
  const TensorId y = w.activation("positions", a.hidden, Split::sequence);
  w.elementwise("positions", OpKind::embedding, a.hidden, 1, Parallel::tokens, {x, rows}, {y});
  return y;
}

Layer body_layer(const Architecture& a, const LayerKind& kind, const GraphOptions& options,
                 const Place& place) {
  expect_valid(a, kind);
  LayerWriter w(place.name, a, options, body_weights(options));
  const TensorId x = w.input();
  TensorId sum = x, normed;
  if (kind.mixer != Mixer::none) {
    normed = w.norm("norm1", x);
    sum = add_branch(w, "1", x, mixer_branch(w, kind, normed));
  }
  if (kind.ffn > 0 || kind.experts) {
    const bool shared = normed && a.norms_per_layer == 1;
    const TensorId input = shared ? normed : w.norm("norm2", a.parallel_block ? x : sum);
    sum = add_branch(w, "2", sum, feed_forward_branch(w, kind, input));
  }
  Layer layer = w.finish(sum, place.input_trained);
  layer.takes = layer.gives = place.passes;
  return layer;
}

std::vector<Run> body_runs(OpGraph& graph, const Architecture& a, const GraphOptions& options,
                           const Place& place) {
  std::vector<std::pair<LayerKind, LayerId>> known;
  std::vector<Run> runs;
  for (const LayerRun& run : layer_runs(a)) {
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto& entry) { return entry.first == run.kind; });
    if (found == known.end()) {
      Place named = place;
      if (!a.runs.empty()) named.name = place.prefix + run.kind.name;
      known.emplace_back(run.kind, graph.layers.push_back(body_layer(a, run.kind, options, named)));
      found = known.end() - 1;
    }
    runs.push_back({found->second, run.count});
  }
  return runs;
}

std::string unlowered(const Architecture& a) {
  if (std::any_of(a.runs.begin(), a.runs.end(), attends_across)) {
    return "models whose layers attend to another stack's output (encoder-decoder, Llama 3.2 "
           "Vision) can be described but not trained yet";
  }
  if (a.towers.size() > 1) {
    return "models with more than one tower can be described but not trained yet";
  }
  if (a.vocab == 0 && !a.custom) {
    return "models that read images or sound alone can be described but not trained yet";
  }
  return "";
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
                .tied_embeddings = architecture.tied_embeddings && architecture.has_head};
  for (const Tower& tower : architecture.towers) append_tower(graph, tower, options);
  graph.embedding =
      graph.layers.push_back(architecture.vocab > 0 ? embedding_layer(architecture, options)
                                                    : source_layer(architecture, options));
  graph.front.push_back({graph.embedding, 1});
  graph.body = architecture.custom ? custom_runs(graph, architecture, options)
                                   : body_runs(graph, architecture, options, {.name = "decoder"});
  graph.head = graph.layers.push_back(head_layer(architecture, options));
  graph.back = {{graph.head, 1}};
  return graph;
}

}  // namespace orrery

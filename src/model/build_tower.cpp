#include <cmath>

#include "core/error.h"
#include "model/build_parts.h"

namespace orrery {
namespace {

std::int64_t images(const GraphOptions& options) {
  return std::llround(std::ceil(options.images * static_cast<double>(options.micro_batch)));
}

// The tower's own micro-batch: each of its inputs is a sequence.
GraphOptions tower_options(const Tower& tower, const GraphOptions& options) {
  GraphOptions own = {.micro_batch = images(options),
                      .seq_len = tower.tokens,
                      .compute = options.compute,
                      .matrices = options.matrices,
                      .flash_attention = options.flash_attention};
  own.causal = false;
  own.frozen = options.frozen_towers;
  return own;
}

// Patches (or frames) to the width of the stack. Pixels arrive as numbers of the compute precision.
Layer stem(const Tower& tower, const GraphOptions& options) {
  const Architecture& a = tower.stack;
  LayerWriter w(tower.name + " stem", a, options, body_weights(options));
  const TensorId pixels = w.activation("pixels", tower.patch, Split::sequence);
  w.elementwise("pixels", OpKind::cast, tower.patch, 1, Parallel::tokens, {}, {pixels});
  TensorId x = w.linear({.name = "patches",
                         .x = pixels,
                         .width_in = tower.patch,
                         .outputs = {{"patches", a.hidden}},
                         .parallel = Parallel::tokens,
                         .precision = options.compute})[0];
  x = add_positions(w, x);
  if (a.embedding_norm) x = w.norm("norm", x);
  Layer layer = w.finish(x);
  layer.gives = tower.name + " hidden";
  return layer;
}

Layer last_norm(const Tower& tower, const GraphOptions& options, bool input_trained) {
  LayerWriter w(tower.name + " norm", tower.stack, options, body_weights(options));
  Layer layer = w.finish(w.norm("norm", w.input()), input_trained);
  layer.takes = layer.gives = tower.name + " hidden";
  return layer;
}

// The matrices that bring the stack's output to the main stack; several tokens may enter as one.
Layer projector(const Tower& tower, const GraphOptions& options, bool frozen, bool input_trained) {
  const Architecture& a = tower.stack;
  GraphOptions own = options;
  own.seq_len = tower.tokens_out;
  own.frozen = frozen;
  LayerWriter w(tower.name + " projector", a, own, body_weights(own));
  TensorId x = w.input(options.micro_batch * options.seq_len * a.hidden);
  for (std::size_t i = 0; i < tower.projector.size(); ++i) {
    const Tower::Projection& matrix = tower.projector[i];
    const std::string name = "projection" + std::to_string(i + 1);
    if (i > 0) {
      const TensorId y = w.activation(name + ".activation", matrix.in, Split::sequence);
      w.elementwise(name + ".activation", OpKind::activation, matrix.in, kActivationFlop,
                    Parallel::tokens, {x}, {y});
      x = y;
    }
    x = w.linear({.name = name,
                  .x = x,
                  .width_in = matrix.in,
                  .outputs = {{name, matrix.out}},
                  .parallel = Parallel::tokens,
                  .bias = matrix.bias,
                  .precision = options.compute})[0];
  }
  Layer layer = w.finish(x, input_trained);
  layer.takes = tower.name + " hidden";
  layer.gives = tower.name + " features";
  return layer;
}

}  // namespace

std::int64_t feature_tokens(const Tower& tower, const GraphOptions& options) {
  return images(options) * tower.tokens_out;
}

void append_tower(OpGraph& graph, const Tower& tower, const GraphOptions& options) {
  const GraphOptions own = tower_options(tower, options);
  const bool trained = !options.frozen_towers;
  graph.front.push_back({graph.layers.push_back(stem(tower, own)), 1});
  const Place place = {.name = tower.name + " layer",
                       .passes = tower.name + " hidden",
                       .prefix = tower.name + " ",
                       .input_trained = trained};
  for (const Run& run : body_runs(graph, tower.stack, own, place)) graph.front.push_back(run);
  if (tower.stack.final_norm) {
    graph.front.push_back({graph.layers.push_back(last_norm(tower, own, trained)), 1});
  }
  graph.front.push_back(
      {graph.layers.push_back(projector(tower, own, options.frozen_projector, trained)), 1});
}

}  // namespace orrery

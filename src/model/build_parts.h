// The parts of training_graph(); for build*.cpp only.
//
// build.cpp              embedding, layers of the body, head; the runs of all
// build_attention.cpp    attention, with heads of their own or latent
// build_feed_forward.cpp dense feed-forward and mixture of experts
// build_state_space.cpp  Mamba
// build_tower.cpp        towers
// build_custom.cpp       layers that are described by hand
#pragma once

#include <string>

#include "model/layer_writer.h"

namespace orrery {

inline WeightState body_weights(const GraphOptions& options) {
  if (!options.frozen) return WeightState::trained;
  return options.quantised ? WeightState::quantised : WeightState::frozen;
}

// Branches of a layer: from its normed input to what is added to the residual stream, both
// [tokens, hidden].
TensorId attention_branch(LayerWriter& w, const LayerKind& kind, TensorId x);
TensorId latent_attention_branch(LayerWriter& w, const LayerKind& kind, TensorId x);
TensorId selective_scan_branch(LayerWriter& w, TensorId x);
TensorId dual_scan_branch(LayerWriter& w, TensorId x);
TensorId feed_forward_branch(LayerWriter& w, const LayerKind& kind, TensorId x);

// Learned positions, a table of its own beside the tokens'; `x` itself where there are none.
TensorId add_positions(LayerWriter& w, TensorId x);

struct Place {
  std::string name;               // of a uniform stack's layers; others have their kind's name
  std::string passes = "hidden";  // what enters and leaves
  std::string prefix = "";        // of the names of kinds
  bool input_trained = true;
};
Layer body_layer(const Architecture& a, const LayerKind& kind, const GraphOptions& options,
                 const Place& place);
// Runs of the stack's layers; a kind that occurred before is not written again.
std::vector<Run> body_runs(OpGraph& graph, const Architecture& a, const GraphOptions& options,
                           const Place& place);

// Runs of a custom model's layers.
std::vector<Run> custom_runs(OpGraph& graph, const Architecture& a, const GraphOptions& options);

// Appends the layers of a tower, from its inputs to "NAME features", to graph.front.
void append_tower(OpGraph& graph, const Tower& tower, const GraphOptions& options);
// What reaches the main stack: tokens of all images of a micro-batch.
std::int64_t feature_tokens(const Tower& tower, const GraphOptions& options);

}  // namespace orrery

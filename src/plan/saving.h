// What of a layer is kept from its forward pass for its backward pass, and what is computed again.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "model/graph.h"
#include "plan/strategy.h"

namespace orrery {

// One operator's turn in a pass.
struct Turn {
  OpId op;
  bool recomputed = false;
  double share = 1;  // of its output that is computed (the rest was kept)
};

struct LayerPasses {
  std::vector<Turn> forward;
  std::vector<Turn> backward;       // recomputed forward operators among them
  std::map<TensorId, double> kept;  // between the two, and which share of it
};

// none: what backward operators read. selective (arXiv 2205.05198, section 5): all of that but the
// scores and what follows up to the values, run again just before they are needed; with fused
// attention the same as none. operators: torchtitan's activation_checkpoint "selective", option
// "op": outputs of attention and of every second matrix product, the first one included, counting
// fused projections (q, k, v; gate, up) one by one. full: the layer's input; everything again.
LayerPasses passes_of(const Layer& layer, Recompute recompute);

// A backward pass in two (arXiv 2401.10241, section 2): what leads to the gradient of the input,
// with all recomputation, and the products that only weights' gradients come of.
struct SplitBackward {
  std::vector<Turn> input, weights;
  std::set<TensorId> held;  // activations and gradients that wait for the second
};
SplitBackward split_backward(const Layer& layer, const LayerPasses& passes);

}  // namespace orrery

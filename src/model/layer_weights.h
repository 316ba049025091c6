// How many weights a layer of each kind has, and which of them are matrices.
#pragma once

#include <cstdint>

#include "catalog/architecture.h"

namespace orrery {

// Matrices multiply tokens; the rest (biases, norms, scales) is looked up or added.
struct Weights {
  std::int64_t matrices = 0, rest = 0;
  std::int64_t all() const { return matrices + rest; }
};

struct LayerWeights {
  Weights attention, state_space;
  Weights source;  // of cross attention, keys and values: they multiply the source's tokens
  Weights mlp;     // dense
  Weights expert;  // one routed expert
  Weights shared;  // all shared experts, with their gate
  Weights router;
  std::int64_t norms = 0;  // on queries, keys, latents and the scan's output too
};

/// Of one layer; an expert layer has architecture.experts.count times `expert`. Shapes as the
/// modelling files of huggingface/transformers have them, Mamba's as state-spaces/mamba.
LayerWeights layer_weights(const Architecture& architecture, const LayerKind& kind);

}  // namespace orrery

// Architecture and micro-batch to operator graph: the forward pass written down, the backward
// derived.
#pragma once

#include "catalog/architecture.h"
#include "model/graph.h"

namespace orrery {

struct GraphOptions {
  std::int64_t micro_batch;             // sequences
  std::int64_t seq_len;                 // tokens a sequence
  Precision compute = Precision::bf16;  // of activations and vector work
  Precision matrices =
      Precision::bf16;  // of the linear layers: fp8 leaves attention and logits in `compute`
  bool flash_attention = true;  // false: scores, softmax and values as separate kernels
  bool dropout = false;         // keeps masks, as GPT-2 and Megatron's papers trained
  bool causal = true;
  std::int64_t padded_vocab = 0;  // 0: the architecture's own
};

// Forward operators as listed in docs/architecture.md; each backward operator follows from its
// forward one by `differentiate`, so that what must be saved is derived, never tabulated.
OpGraph training_graph(const Architecture& architecture, const GraphOptions& options);

// Appends to `layer` the gradients of its forward operators, last first.
void differentiate(Layer& layer);

}  // namespace orrery

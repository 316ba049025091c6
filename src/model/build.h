// Architecture and micro-batch to operator graph: the forward pass written down, the backward
// derived.
//
// Forward operators, by name; [..] where the architecture or the options have it. d is head_dim.
// A tower comes first: its stem, its layers, its projector, all named "TOWER ...".
//
//   embedding   embedding [positions] [norm] [dropout]
//   decoder     norm1 qkv [qk_norm] [rotary]
//               attention                                  fused
//               scores softmax [softmax_dropout] values    unfused
//               proj [dropout1] residual1
//               [norm2] fc1 activation fc2 [dropout2] residual2
//   head        [norm] logits cross_entropy
//
// qkv writes q [tokens, heads d], k and v [tokens, kv_heads d]; fc1 of a gated activation writes
// [tokens, 2 ffn]. In a parallel block norm2 reads the layer's input, or is absent and fc1 reads
// norm1. A matmul in a narrower format than its input (fp8) is preceded by "NAME.cast".
//
// Not in the graph, being small against the rest: token ids, statistics of norms, the draw of
// random numbers.
#pragma once

#include <string>

#include "catalog/architecture.h"
#include "model/graph.h"

namespace orrery {

struct GraphOptions {
  std::int64_t micro_batch;              // sequences
  std::int64_t seq_len;                  // tokens a sequence
  Precision compute = Precision::bf16;   // of activations and vector work
  Precision matrices = Precision::bf16;  // of qkv, proj, fc1, fc2; all else is in `compute`
  bool flash_attention = true;           // false: scores, softmax, values as separate kernels
  bool dropout = false;                  // as GPT-2 and Megatron's papers trained; keeps masks
  bool causal = true;
  std::int64_t padded_vocab = 0;  // 0: the architecture's own
  double documents = 1;           // texts packed into a sequence that do not see each other

  // Fine-tuning. Frozen weights have no gradient of their own; adapters are trained beside them
  // (LoRA, arXiv 2106.09685): a matrix [k, n] gains [k, rank] and [rank, n].
  bool frozen = false;                                     // all weights of the stack but adapters
  std::int64_t adapter_rank = 0;                           // 0: none
  bool adapt_attention = true, adapt_feed_forward = true;  // which matrices gain one
  bool train_embeddings = false;  // embedding and head too, though the rest is frozen
  bool quantised = false;         // frozen matrices of the layers are kept in 4 bits (QLoRA)
  bool frozen_towers = false;     // forward pass only, unless something before is trained
  bool frozen_projector = false;
  double images = 1;       // of each tower's inputs, a sequence
  double expert_load = 1;  // copies that the fullest rank computes over the even share
};

OpGraph training_graph(const Architecture& architecture, const GraphOptions& options);

// Why no graph can be made of a model that can be described; empty: one can.
std::string unlowered(const Architecture& architecture);

// Appends to `layer` the gradients of its forward operators, last first, so that what must be
// saved is derived, never tabulated. A gradient reads
//   matmul                             dgrad: dy, weight; wgrad: x, dy. A narrower format casts
//                                      dy once for both
//   attention                          q, k, v, o, the statistics of its softmax, do
//   scores, values                     their two inputs, dy
//   norm, activation, cross_entropy    their input (and weight), dy
//   softmax                            its output, dy
//   dropout                            its mask, dy
//   rotary, embedding                  dy
//   residual, cast                     nothing: dy is the gradient of each input
// Where a tensor is read twice, a sum of kind residual joins its two gradients.
void differentiate(Layer& layer);

}  // namespace orrery

// Architecture and micro-batch to operator graph: the forward pass written down, the backward
// derived.
//
// Forward operators, by name; [..] where the architecture or the options have it. d is head_dim.
//
//   embedding   embedding [features] [positions] [norm] [dropout]
//   decoder     norm1 MIXER [post_norm1] [dropout1] residual1
//               [norm2] FEED-FORWARD [post_norm2] [dropout2] residual2
//   head        [norm] logits cross_entropy, or [norm] loss where the task's head is not the
//   model's
//
//   MIXER: attention         qkv [qk_norm] [rotary]
//                            attention                                  fused
//                            scores softmax [softmax_dropout] values    unfused
//                            proj
//          latent attention  [q_down q_norm] q_up kv_down kv_norm kv_up rotary, then as above
//          Mamba             in_proj convolution x_proj dt_proj scan gate out_proj
//          Mamba 2           in_proj convolution scan gated_norm out_proj
//   FEED-FORWARD: dense      fc1 activation fc2
//                 experts    router routing dispatch fc1.experts activation.experts fc2.experts
//                            combine [fc1.shared activation.shared fc2.shared
//                            [gate.shared gated.shared] sum.shared]
//
//   TOWER stem, TOWER layer, [TOWER norm], TOWER projector: pixels patches [positions] [norm]; as a
//   decoder; norm; projection1 [projection2.activation projection2 ..]. They pass "TOWER hidden"
//   and give the embedding "TOWER features", which take the place of as many tokens.
//
// qkv writes q [tokens, heads d], k and v [tokens, kv_heads d]; fc1 of a gated activation writes
// [tokens, 2 ffn]. In a parallel block norm2 reads the layer's input, or is absent and fc1 reads
// norm1. A matmul in a narrower format than its input (fp8) is preceded by "NAME.cast"; one with an
// adapter is followed by "NAME.lora_a", "NAME.lora_b" and a sum for each of its outputs. The
// weights of a token's experts multiply the activation, as in Megatron-Core since 0.12, so that
// combine is a sum.
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
//   convolution, scan                  their input (and weight), dy
//   routing                            its output, dy
//   rotary, embedding, dispatch, combine   dy
//   residual, cast                     nothing: dy is the gradient of each input (of a smaller
//                                      one, a copy of its rows)
// Where a tensor is read twice, a sum of kind residual joins its two gradients. Gradients are made
// only of what is trained and of what comes of it: `input_trained` says whether that is so of what
// enters the layer. A matmul whose weight is frozen has no wgrad and so does not keep its input.
void differentiate(Layer& layer, bool input_trained = true);

}  // namespace orrery

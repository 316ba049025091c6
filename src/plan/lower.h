// OpGraph and Strategy to Program: the one place where work is divided over ranks.
//
// Tensor parallelism: what a matmul or the embedding's lookup needs of every token is gathered,
// what it gives in part is summed, on the tensor stream, between the kernels before and after;
// without sequence parallelism that is two all-reduces a layer and pass. How much of it a framework
// hides is a matter of price. Activations travel between stages whole unless sequence parallelism
// divides them (Megatron's older scatter-gather is not modelled).
//
// Context parallelism: one all-gather of keys and values a layer and pass, one reduce-scatter of
// their gradients; causal work is balanced.
//
// Data parallelism, on the data stream, one collective a layer:
//   ZeRO 0, 1   gradients once a step, in each chunk's last backward pass; ZeRO 1 and 2 gather the
//               weights that the last step updated in each chunk's first forward pass. Without
//               overlap_data both stand at the end of the step.
//   ZeRO 2, 3   gradients in every backward pass; ZeRO 3 gathers weights in every pass, one layer
//               ahead.
//   ZeRO 3 in a pipeline without resharding gathers and reduces once a step, as torchtitan does;
//   so it does where backward passes are split, and ZeRO 2 keeps whole gradients there.
//   dualpipe's two copies of a layer sum their gradients once a step.
//
// Split backward passes (zb-h1, zb-v, dualpipe): matrix products that give weights' gradients run
// apart; what they read waits for them, sharded under sequence parallelism and so gathered once
// more. Where layers are recomputed, that is done for the input's gradient, and what the products
// read then waits too: a schedule that puts them off holds it for several micro-batches.
//
// Not modelled: sums of the norms' gradients over tensor ranks under sequence parallelism, gradient
// clipping's norm, uneven padding of the vocabulary, copies of key-value heads where tp exceeds
// them.
#pragma once

#include "model/graph.h"
#include "plan/program.h"

namespace orrery {

// How a framework stores and moves what a strategy divides (catalog data, resolved at the door).
struct Recipe {
  double gradient_bytes = 4;          // per parameter, kept and reduced
  double reduce_bytes = 4;            // per parameter on the wire
  double gather_bytes = 2;            // per parameter on the wire
  double weight_bytes = 2;            // per parameter kept for the matrices
  double optimizer_bytes = 12;        // per parameter: master copy and two moments
  double logit_bytes = 4;             // kept of a logit and its gradient; unfused losses keep more
  bool overlap_data = true;           // gradient buckets and parameter gathers on the data stream
  bool reshard_after_forward = true;  // ZeRO-3 gathers again for the backward pass
  bool scatters_sends = false;        // tensor ranks each send a slice (arXiv 2104.04473, 4.1)
  bool shards_checkpoints = false;    // full recompute keeps its inputs divided by tp
  double head_gradient_bytes = 4;     // fp32 gradient of the output matrix before accumulation
  double frozen_bytes = 2;            // per parameter that is not trained
  double quantised_bytes = 0.5;       // per parameter kept in 4 bits, with its scales
  double kept = 1;                    // bytes of a kept activation over those needed
  double weight_copies = 0;           // bytes per weight of the layers' matrices: fp8 copies
};

// Owes: a strategy that breaks no rule, for whose micro-batch and sequence `graph` was built.
Program lower(const OpGraph& graph, const Strategy& strategy, const Recipe& recipe);

// Decoder layers of each [stage][chunk]: equally many; or, where layers + 2 divide and layers do
// not, embedding and head take the place of one each; else the first chunks hold one more.
std::vector<std::vector<std::int64_t>> layer_split(std::int64_t layers, std::int64_t pp,
                                                   std::int64_t vpp);
// The same as the strategy says, where it does.
std::vector<std::vector<std::int64_t>> layer_split(const Strategy& strategy, std::int64_t layers);

}  // namespace orrery

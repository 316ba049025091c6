// OpGraph and Strategy to Program: the one place where work is divided over ranks.
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
  bool fused_cross_entropy = true;    // 4 bytes a logit kept, else 10
  bool overlap_data = true;           // gradient buckets and parameter gathers on the data stream
  bool reshard_after_forward = true;  // ZeRO-3 gathers again for the backward pass
  bool shards_checkpoints = false;    // full recompute keeps its inputs divided by tp
  double head_gradient_bytes = 4;     // fp32 gradient of the output matrix before accumulation
};

Program lower(const OpGraph& graph, const Strategy& strategy, const Recipe& recipe);

// Decoder layers of each (stage, chunk), as even as whole layers allow.
std::vector<std::vector<std::int64_t>> layer_split(std::int64_t layers, std::int64_t pp,
                                                   std::int64_t vpp);

}  // namespace orrery

// Where ranks sit: tensor-parallel ranks innermost, then context, data, pipeline (Megatron's
// order). The ranks of a stage are counted a second time for the experts: those that divide one
// innermost, then those that exchange tokens, then the copies.
#pragma once

#include <cstdint>
#include <string_view>

#include "plan/strategy.h"

namespace orrery {

// Equal ranks `stride` apart; all groups of a kind are alike, so one stands for all.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  // How many of its ranks share a node of `gpus_per_node` (at least 1).
  std::int64_t ranks_per_node(std::int64_t gpus_per_node) const;
  std::int64_t nodes(std::int64_t gpus_per_node) const;
};

enum class GroupKind {
  tensor,
  context,
  data,            // data x context ranks: replicas of the same weights
  shard,           // those that ZeRO divides over
  replica,         // copies of a shard (hybrid sharding)
  pipeline,        // neighbours exchange activations
  embedding,       // first and last stage, which share a tied matrix
  mirror,          // stages that hold the same layers (dualpipe), those farthest apart
  expert,          // ranks that exchange tokens for their experts
  expert_tensor,   // that divide one expert
  expert_shard,    // that ZeRO divides an expert's state over
  expert_replica,  // copies of an expert's shard
};

Group group_of(GroupKind, const Strategy&);
std::string_view name_of(GroupKind);

// Ranks that one copy of ZeRO's shards spans: the strategy's, or all of data x context.
std::int64_t shard_ranks(const Strategy&);
// The same of the experts' weights: as many of their replicas as the strategy's shard holds.
std::int64_t expert_shard_ranks(const Strategy&);

}  // namespace orrery

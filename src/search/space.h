// The strategies worth asking about: what the user left open, varied.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/strategy.h"
#include "twin/scenario.h"

namespace orrery {

// Values to try of each choice; one value where the user gave it.
struct Space {
  std::vector<std::int64_t> tp, pp, vpp, cp, ep, micro_batch;
  std::vector<Recompute> recompute;
  std::vector<Zero> zero;
  std::optional<std::int64_t> dp;      // none: whatever the others leave
  bool sequence_parallel_too = false;  // both ways with tp > 1, else the scenario's
};

// What `request` leaves open on the scenario that it resolved to: powers of two within a node for
// tp, whatever divides the layers for pp and chunks, 1 to 8 sequences a micro-batch, context
// parallelism from 32 Ki tokens on, powers of two that divide the experts for ep, the framework's
// ZeRO or more.
Space space_of(const Request& request, const Scenario& scenario);

// Strategies that differ in how much they recompute and shard only, least first: when one fits in
// memory, those that do no less of either are slower and are not priced.
using Ladder = std::vector<Strategy>;

std::vector<Ladder> candidates(const Space&, const Scenario&);

}  // namespace orrery

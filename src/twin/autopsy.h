// Where the memory of the fullest rank goes, and what may be done about it.
#pragma once

#include "twin/twin.h"

namespace orrery {

// EXPECTs a priced answer to the scenario. Takes the pricing of some twenty changes, and two
// searches by halves over sequence lengths and micro-batches.
Autopsy autopsy(const Scenario&, const Answer&);

// The longest sequence that fits, in steps of `sequence_step`, all else unchanged, and the largest
// micro-batch that divides the global batch; none: not even the least does. A peak grows with
// either.
std::optional<std::int64_t> longest_sequence(const Scenario&);
std::optional<std::int64_t> largest_micro_batch(const Scenario&);
// Tokens: divides evenly over twice the context ranks and over the tensor ranks.
std::int64_t sequence_step(const Strategy&);

}  // namespace orrery

// What DeepSpeed's own estimator says of a ZeRO-3 job, for those who compare: states only, which no
// peak is.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/strategy.h"
#include "twin/scenario.h"

namespace orrery {

struct DeepspeedEstimate {
  Bytes gpu, host;  // of one GPU; of one node's host
};

// deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py, estimate_zero3_model_states_mem_needs
// with its defaults (zero_init, buffers of the host 1.5 times what they hold). `largest` is the
// number of parameters of the largest module, gathered in 2 bytes beside its gradient.
DeepspeedEstimate deepspeed_estimate(std::int64_t parameters, std::int64_t largest,
                                     std::int64_t gpus_per_node, std::int64_t nodes, Offload);

// Of a scenario; none: not a ZeRO-3 job of DeepSpeed's.
std::optional<DeepspeedEstimate> deepspeed_estimate(const Scenario&);

}  // namespace orrery

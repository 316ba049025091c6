// Tokens a second and GPU, from whatever a source prints.
#pragma once

#include <string>
#include <variant>

#include "catalog/architecture.h"
#include "plan/strategy.h"
#include "validate/dimensions.h"
#include "validate/measurement.h"

namespace orrery {

/// FLOPs that a GPU does for one token where `share` of the layers are computed again: 4/3 of the
/// layers' own where all are, as Narayanan et al. 2021 count them.
double hardware_flop_per_token(const Architecture&, std::int64_t seq_len, Recompute, double share);

/// The first of: tokens/s as printed, the step time, model TFLOP/s, hardware TFLOP/s, MFU, HFU. A
/// FLOP rate is turned back by its own convention; one that counts a nominal size is no measure of
/// speed. Skip: nothing that can be used is printed.
std::variant<double, Skip> measured_throughput(const Measurement& row, const Architecture& model,
                                               std::int64_t gpus, std::int64_t global_batch,
                                               Recompute recompute, double share);

}  // namespace orrery

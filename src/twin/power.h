// What the GPUs of a job draw on average over a step.
#pragma once

#include "catalog/gpu.h"
#include "cost/estimate.h"
#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

// How often a rank of one class launches each kernel in a step, loops multiplied out.
IdVector<KernelId, std::int64_t> launches_of(const Program&, const RankClass&);

// Mean over all ranks of a floor and the energy of their work, each within `limit`.
Watts mean_gpu_power(const Program&, const Prices&, const Gpu&, Seconds step, Watts limit);

}  // namespace orrery

// What the GPUs of a job draw on average over a step.
#pragma once

#include "cost/estimate.h"
#include "physics/device.h"
#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

/// Mean over all ranks: the energy of their kernels and updates, and of a waiting GPU for the rest
/// of the step, within the device's limit. What collectives draw beside a waiting GPU is not
/// counted.
Watts mean_gpu_power(const Program& program, const Prices& prices, const Device& device,
                     Seconds step);

}  // namespace orrery

// What a GPU draws on average over a step.
#pragma once

#include "catalog/gpu.h"
#include "units/quantity.h"

namespace orrery {

// How a GPU of the busiest class spends its step.
struct Activity {
  Seconds matrix;  // matrix units at work
  Seconds memory;  // kernels bound by memory, the optimizer among them
  Seconds step;    // all of it; the rest waits for others
};

// Idle draw with a context, and shares of the rest up to the limit: matrix work reaches the limit
// (an H100 SXM draws 696 of its 700 W in HPL), streaming 0.78 of it (an H200 draws 572 W at
// 3.76 TB/s, 122 W of them at rest), waiting in a collective 0.25 (assumed).
Watts average_power(const Gpu& gpu, Watts limit, const Activity& activity);

}  // namespace orrery

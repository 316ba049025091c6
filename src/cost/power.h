// Energy of a job's kernels, and what stands around the GPUs.
#pragma once

#include "catalog/cluster.h"
#include "physics/device.h"
#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

/// Of one run of a kernel that takes `duration`: physics/power.h, with each operand moved once.
Joules energy_of(const Kernel& kernel, Seconds duration, const Device& device);

/// The same of work that only moves bytes.
Joules energy_of(Bytes moved, Seconds duration, const Device& device);

/// CPUs, memory, fans, NICs and switches of a node under load, by GPU in use. InputError when the
/// catalog does not know them.
Watts host_power_per_gpu(const Cluster& cluster);

/// At the meter of a site with this PUE (power usage effectiveness: everything over computers).
/// Industry mean 1.56 (Uptime Institute 2024), new hyperscale sites 1.1 to 1.2.
inline constexpr double typical_pue = 1.25;
Watts at_the_meter(Watts gpu, Watts host, double pue = typical_pue);

}  // namespace orrery

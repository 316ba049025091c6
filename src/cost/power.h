// What a GPU draws on average over a step, from the work in it, and what stands around it.
#pragma once

#include "catalog/cluster.h"
#include "units/quantity.h"

namespace orrery {

// Work of one GPU in one step. Matrix work is what tensor cores do; fp32 arithmetic is vector work.
struct GpuWork {
  Flop matrix;
  Precision precision = Precision::bf16;
  Flop vector;
  Bytes memory;  // to and from HBM or GDDR
};

// Energy of the work on top of a floor. The energies hold at the clocks of long, power-limited
// kernels; below the limit the clock and with it the voltage are higher, and matrix work takes
// `full_clock` times as much.
struct PowerModel {
  Watts floor;  // a context, no kernel running
  JoulesPerFlop sixteen_bit, eight_bit, vector;
  JoulesPerByte memory;
  double full_clock = 1;
  Watts rated;  // the limit under which kernels reach their sustained rates

  JoulesPerFlop matrix(Precision) const;
};

PowerModel power_model_of(const Gpu&);

Joules energy(const PowerModel&, const GpuWork&);  // without the floor's

// The same of a kernel that runs for `duration`: at full clock, or as much as the limit allows.
Joules energy_under(Watts limit, const PowerModel&, const GpuWork&, Seconds duration);

// Floor plus energy over time, never above the limit.
Watts average_power(const PowerModel&, const GpuWork&, Seconds step, Watts limit);

// CPUs, memory, fans, NICs and switches of a node under load, by GPU in use. InputError when the
// catalog does not know them.
Watts host_power_per_gpu(const Cluster&);

// At the meter of a site with this PUE (power usage effectiveness: everything over computers).
// Industry mean 1.56 (Uptime Institute 2024), new hyperscale sites 1.1 to 1.2.
inline constexpr double typical_pue = 1.25;
Watts at_the_meter(Watts gpu, Watts host, double pue = typical_pue);

}  // namespace orrery

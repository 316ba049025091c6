// What a Program takes: the longest path over its rank classes, and what held it up.
#pragma once

#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

// How long one instruction holds its own stream, and how much of that it takes from the compute
// stream too (a collective that shares SMs and memory bandwidth with the kernels beside it).
struct Price {
  Seconds duration;
  Seconds stolen;
};

// Durations of the interned kernels and collectives and of the rest, computed once per Program.
struct Prices {
  IdVector<KernelId, Seconds> kernels;
  IdVector<CommId, Price> comms;
  // point-to-point between pipeline neighbours, host copies and updates, by size
  Seconds point_to_point_latency;
  BytesPerSecond point_to_point;
  Seconds host_latency;
  BytesPerSecond host;
  BytesPerSecond update;  // of the optimizer's bytes
  Seconds step_overhead;  // fixed, once a step
  Seconds launch;         // CPU time a kernel: a block takes at least launches x this
};

struct Breakdown {
  Seconds compute, exposed_comm, bubble, optimizer,
      overhead;  // of the slowest class; sums to the step
};

struct Estimate {
  Seconds step;
  Breakdown breakdown;
  IdVector<ClassId, Seconds> busy;  // compute stream's work, by class
};

// Exact longest path under the rules of program.h. Loops without sends are folded: iterated until
// the streams advance by the same amount each turn, then extrapolated. Cost grows with
// classes x micro-batches x chunks x instructions of a block, not with layers.
Estimate estimate(const Program&, const Prices&);

}  // namespace orrery

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
  // How many the host starts for each; empty: one.
  IdVector<KernelId, std::int64_t> launches;
  IdVector<CommId, Price> comms;
  // point-to-point between pipeline neighbours, host copies and updates, by size
  Seconds point_to_point_latency;
  BytesPerSecond point_to_point;
  Seconds host_latency;
  BytesPerSecond host;
  BytesPerSecond update;       // of the optimizer's bytes
  BytesPerSecond drives;       // of the node, a GPU's share
  BytesPerSecond host_update;  // the same on the node's cores, a GPU's share of them
  Seconds step_overhead;       // fixed, once a step
  Seconds launch;              // CPU time a kernel: a block takes at least launches x this
};

// Where the time of the busiest class went, as its compute stream saw it (of equals, the one that
// finishes last). Sums to the step.
struct Breakdown {
  Seconds compute;       // kernels, recomputed ones too
  Seconds exposed_comm;  // idle while a collective, transfer or copy ran; and what they stole
  Seconds bubble;        // idle until another class sent, beyond the transfer, or was done
  Seconds optimizer;     // updates
  Seconds overhead;      // launches that outlast their block, and the step's fixed cost
};

struct Estimate {
  Seconds step;
  Breakdown breakdown;
  IdVector<ClassId, Breakdown> classes;
  IdVector<ClassId, Seconds> busy;  // compute stream's work (kernels and updates), by class
};

// Exact longest path under the rules of program.h, and these:
// - An instruction starts when its stream is free and all events it waits for have happened.
// - A collective's stolen time delays the compute stream at the point where it stands in program
//   order (unless it runs on that stream itself).
// - A message leaves when its Send starts, however late the Recv is posted, and arrives a latency
//   and size / bandwidth later. On the pipeline stream the Send holds its stream that long.
// - A Call takes the compute stream at least its kernels x `launch`, waits inside it included.
// - A class that waits for a message never sent breaks a contract, and so does one never received.
//
// Loops without messages are folded: iterated until two turns in a row advance everything they
// touch by one same amount, then multiplied (a loop in which a stream that nobody waits for falls
// ever further behind is iterated to its end). Calls without messages are remembered by what they
// found. Cost grows with classes x micro-batches x chunks, plus instructions of a block, not with
// layers.
Estimate estimate(const Program&, const Prices&);

}  // namespace orrery

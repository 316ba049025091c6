// How long NCCL's collectives take: within a node the best of its protocols, between nodes the
// slower of links and NICs.
#pragma once

#include <cstdint>

#include "catalog/cluster.h"
#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

// What joins GPUs. Rates are of one GPU, per direction, as printed.
struct Network {
  GpuArchitecture architecture = GpuArchitecture::hopper;
  GpuLink link = GpuLink::nvlink;
  std::int64_t gpus_per_node = 8;
  BytesPerSecond intra;
  double intra_efficiency = 1;  // of `intra`, that one long message reaches
  Seconds intra_latency;        // of one message
  bool in_switch_reduction = false;
  BytesPerSecond copy;  // a rank's own part, from buffer to buffer

  BytesPerSecond inter;
  double inter_efficiency = 1;
  Seconds inter_latency;        // of one message, with NCCL's work
  Seconds fabric_latency;       // of the wire and the switches alone
  double oversubscription = 1;  // divides `inter` beyond a leaf
  std::int64_t nodes_per_leaf = 1;
};

Network network_of(const Cluster&);

// An op of `size` bytes as nccl-tests count them (the whole vector), nothing else on the links.
// Other groups of the same kind run beside it, each on its own GPUs and NICs.
Seconds collective_time(const Comm&, const Network&);

}  // namespace orrery

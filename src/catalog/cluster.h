// The machine of one question: equal nodes of equal GPUs on one fabric.
#pragma once

#include <cstdint>
#include <optional>

#include "catalog/fabric.h"
#include "catalog/gpu.h"
#include "catalog/node.h"

namespace orrery {

struct Cluster {
  Gpu gpu;
  Node node;
  std::optional<Fabric> fabric;  ///< always there when there are several nodes
  std::int64_t gpus = 1;
  std::int64_t gpus_per_node = 1;  ///< in use; gpus is a multiple of it
  double oversubscription = 1;     ///< of the fabric's core

  std::int64_t nodes() const { return gpus / gpus_per_node; }
  /// What one GPU sends to the others of its node, line rate, per direction.
  BytesPerSecond intra() const;
  /// What one GPU sends out of its node, line rate, per direction. EXPECTs a fabric.
  BytesPerSecond inter() const;
  /// The same across the fabric's core.
  BytesPerSecond inter_core() const { return inter() / oversubscription; }
  Seconds inter_latency() const;
};

/// InputError if the GPU does not go into the node, the numbers do not divide, or several nodes
/// have no fabric. 0 GPUs a node means as many as it holds; fewer GPUs than that make one node.
Cluster make_cluster(Gpu gpu, Node node, std::optional<Fabric> fabric, std::int64_t gpus,
                     std::int64_t gpus_per_node = 0);

}  // namespace orrery

// The network between nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "catalog/fact.h"
#include "units/quantity.h"
#include "units/text.h"

namespace orrery {

enum class FabricKind { infiniband, roce, efa, omnipath, ethernet, tcpx };
/// Whose rate is given: each GPU has a port of its own, or the node's GPUs share one.
enum class PortOf { gpu, node };

std::string_view to_text(FabricKind kind);

struct Fabric {
  std::string name;
  std::string title;
  FabricKind kind = FabricKind::infiniband;
  PortOf port = PortOf::gpu;
  Fact<BytesPerSecond> rate;           ///< of the port, line rate, per direction
  Fact<double> efficiency;             ///< share of the line rate that one long write reaches
  Fact<double> collective_efficiency;  ///< share that a large collective's bus bandwidth reaches
  Fact<Seconds> latency;               ///< one way, small message, idle network
  Fact<double> oversubscription;       ///< of the core: 2 means half of the rate across it
  bool rail_optimised = false;         ///< the i-th GPUs of all nodes share leaf switches

  /// Line rate that each of a node's GPUs has to itself, per direction.
  BytesPerSecond per_gpu(std::int64_t gpus_per_node) const;
};

/// InputError at `place` for anything missing, misspelled or impossible.
Fabric fabric_from_json(const Json& json, const std::string& place);

}  // namespace orrery

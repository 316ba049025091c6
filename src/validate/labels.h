// What sources call things, in the words of the catalog and of the door.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/gpu_label.h"

namespace orrery {

/// "NVIDIA NeMo Framework Release 24.09" is nemo; nothing for a label of no known kind.
std::optional<std::string> framework_named(std::string_view label);

/// The fabric that leaves a node: "NVLink; 8x400 Gb/s InfiniBand" is ndr400-rail. Nothing if the
/// label names none, or none at a rate that the catalog has.
std::optional<std::string> fabric_named(std::string_view label, std::int64_t gpus_per_node);

struct ZeroLabel {
  int stage;
  std::optional<std::int64_t> shard_ranks;  // where it is fewer than all
};
/// "3 (FSDP=128, DP elsewhere)" is stage 3 over 128 ranks.
std::optional<ZeroLabel> zero_named(std::string_view label);

/// A value of --recompute; `layers` turns "every 2nd layer" into a number of layers.
std::optional<std::string> recompute_named(std::string_view label, std::string_view framework,
                                           std::int64_t layers);

}  // namespace orrery

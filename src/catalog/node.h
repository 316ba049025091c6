// A server: how many GPUs it holds, what joins them and what leaves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/fact.h"
#include "units/quantity.h"
#include "units/text.h"

namespace orrery {

enum class GpuLink { nvlink, pcie };

std::string_view to_text(GpuLink link);

struct Node {
  std::string name;
  std::string title;
  std::vector<std::string> takes;  ///< names of GPUs; "any" takes all
  Fact<std::int64_t> gpus;         ///< at most
  GpuLink link = GpuLink::nvlink;
  bool nvswitch = false;  ///< every GPU reaches every other at its full rate
  bool nvls = false;      ///< the switch also reduces
  Fact<std::int64_t> nics;
  Fact<BytesPerSecond> nic_rate;      ///< of one, per direction
  Fact<Watts> host_power;             ///< all of the node but its GPUs, under load
  std::optional<std::string> fabric;  ///< the usual one; none for a node that stands alone

  bool takes_gpu(std::string_view gpu_name) const;
};

/// InputError at `place` for anything missing, misspelled or impossible.
Node node_from_json(const Json& json, const std::string& place);

}  // namespace orrery

// A GPU as kernel models see it: plain rates, read once.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "catalog/gpu.h"
#include "physics/power.h"
#include "units/quantity.h"

namespace orrery {

struct Device {
  std::string name;
  GpuArchitecture architecture = GpuArchitecture::hopper;
  double sms = 0;
  Hertz boost;            ///< the highest clock
  BytesPerSecond memory;  ///< as published
  Bytes l2;
  std::array<double, all_precisions.size()> per_clock = {};  ///< FLOPs of one SM a clock; 0: none
  PowerCurve power;
  Watts limit;

  /// All SMs at the boost clock; 0 where there is no such unit. Above the published peak where
  /// that was printed for a lower clock.
  FlopPerSecond peak(Precision precision) const {
    return FlopPerSecond(per_clock[static_cast<std::size_t>(precision)] * sms * boost.value());
  }
};

/// `limit`: of power; the card's own where there is none. InputError for an unknown clock or size.
Device device_of(const Gpu& gpu, std::optional<Watts> limit = std::nullopt);

}  // namespace orrery

#include "physics/device.h"

namespace orrery {

Device device_of(const Gpu& gpu, std::optional<Watts> limit) {
  Device device;
  device.power = power_curve_of(gpu);
  device.name = gpu.name;
  device.architecture = gpu.architecture;
  device.sms = static_cast<double>(gpu.sms.value());
  device.boost = device.power.boost;
  device.memory = gpu.memory.bandwidth.value();
  device.l2 = gpu.l2.value();
  for (const Precision precision : all_precisions) {
    const std::optional<FlopPerSecond> peak = gpu.peak(precision);
    if (!peak) continue;
    // Matrix peaks are printed for a clock of their own, others for the boost clock.
    const bool matrix = precision != Precision::fp32 && precision != Precision::fp64;
    const Hertz clock = matrix ? gpu.clock.rate.value() : device.boost;
    device.per_clock[static_cast<std::size_t>(precision)] = (*peak / clock).value() / device.sms;
  }
  device.limit = limit.value_or(gpu.power.limit.value());
  return device;
}

}  // namespace orrery

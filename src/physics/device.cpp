#include "physics/device.h"

namespace orrery {

Device device_of(const Gpu& gpu, std::optional<Watts> limit) {
  Device device;
  device.name = gpu.name;
  device.architecture = gpu.architecture;
  device.sms = static_cast<double>(gpu.sms.value());
  device.boost = gpu.clock.boost.value();
  device.memory = gpu.memory.bandwidth.value();
  device.l2 = gpu.l2.value();
  for (const Precision precision : all_precisions) {
    const std::optional<Flop> flop = gpu.flop_per_clock(precision);
    if (flop) device.per_clock[static_cast<std::size_t>(precision)] = flop->value();
  }
  device.power = power_curve_of(gpu);
  device.limit = limit.value_or(gpu.power.limit.value());
  return device;
}

}  // namespace orrery

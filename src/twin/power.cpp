#include "twin/power.h"

#include <algorithm>

#include "cost/power.h"

namespace orrery {
namespace {

Watts gpu_power(const Program& program, const RankClass& ranks, const Prices& prices,
                const Device& device, Seconds step) {
  const Totals work = totals(program, ranks);
  Joules energy;
  Seconds busy;
  for (const KernelId id : program.kernels.ids()) {
    if (work.launches[id] == 0) continue;
    const auto times = static_cast<double>(work.launches[id]);
    energy += times * energy_of(program.kernels[id], prices.kernels[id], device);
    busy += times * prices.kernels[id];
  }
  const Seconds updates = work.updated / prices.update;
  energy += energy_of(work.updated, updates, device);
  busy += updates;
  energy += std::max(step - busy, Seconds()) * waiting_power(device.power);
  return std::min(device.limit, energy / step);
}

}  // namespace

Watts mean_gpu_power(const Program& program, const Prices& prices, const Device& device,
                     Seconds step) {
  Watts sum;
  double count = 0;
  for (const RankClass& ranks : program.classes) {
    const auto here = static_cast<double>(ranks.ranks);
    sum += here * gpu_power(program, ranks, prices, device, step);
    count += here;
  }
  return sum / count;
}

}  // namespace orrery

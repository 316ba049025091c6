#include "physics/power.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Of the limit, where they are unknown: idle 0.10 on H100 and L40S and 0.13 on A100; a context adds
// 0.07 on H100 and A100 and 0.19 on L40S (arXiv 2604.04745).
constexpr double usual_idle = 0.10;
constexpr double usual_context = 0.07;

// Of an idle H100 (arXiv 2604.04745); other parts: 210 MHz on A100, assumed alike.
constexpr Hertz usual_lowest(345e6);

// A kernel of which nothing takes time draws the floor.
constexpr Seconds shortest(1e-12);

class Kernel {
 public:
  Kernel(const Demand& demand, const PowerCurve& curve) : demand_(demand), curve_(curve) {}

  Operating at(double share) const {
    const Seconds time = time_at(share);
    const Joules work =
        demand_.switching * (demand_.toggle * energy_scale(share)) + demand_.traffic;
    const Watts power = curve_.floor + curve_.clocked * share + work / std::max(time, shortest);
    return {time, curve_.boost * share, power, share < 1};
  }

 private:
  Seconds time_at(double share) const {
    const double memory = demand_.memory.value() * std::max(1.0, curve_.fabric / share);
    return demand_.fixed + Seconds(norm(demand_.compute.value() / share, memory, demand_.overlap));
  }

  double energy_scale(double share) const {
    const double clock =
        curve_.reference > Hertz() ? share * (curve_.boost / curve_.reference) : share;
    return std::max(curve_.voltage_floor, std::pow(clock, curve_.exponent));
  }

  const Demand& demand_;
  const PowerCurve& curve_;
};

}  // namespace

double norm(double a, double b, double q) {
  const double high = std::max(a, b), low = std::min(a, b);
  if (low <= 0) return high;
  return high * std::pow(1 + std::pow(low / high, q), 1 / q);
}

PowerCurve power_curve_of(const Gpu& gpu) {
  const PowerSet& set = gpu.power.set;
  PowerCurve curve;
  if (gpu.power.active.known()) {
    curve.floor = gpu.power.active.value();
  } else {
    const Watts limit = gpu.power.limit.value();
    curve.floor = gpu.power.idle.value_or(limit * usual_idle);
    curve.clocked = gpu.power.context.value_or(limit * usual_context);
  }
  curve.boost = gpu.clock.boost.value_or(gpu.clock.rate.value());
  curve.lowest = std::min(gpu.clock.idle.value_or(usual_lowest), curve.boost);
  curve.reference = set.reference.value();
  curve.voltage_floor = set.voltage_floor.value();
  curve.exponent = set.exponent.value();
  curve.zeros = set.zeros.value();
  curve.fabric = set.fabric.value();
  for (const Precision precision : all_precisions) {
    const auto i = static_cast<std::size_t>(precision);
    if (gpu.supports(precision)) curve.matrix[i] = set.energy[i].value();
  }
  curve.vector = set.energy[static_cast<std::size_t>(Precision::fp32)].value();
  curve.memory = set.memory.value();
  return curve;
}

Watts waiting_power(const PowerCurve& curve) { return curve.floor + curve.clocked; }

Operating operate(const Demand& demand, const PowerCurve& curve, Watts limit) {
  const Kernel kernel(demand, curve);
  const double lowest = curve.lowest / curve.boost;
  const Operating free = kernel.at(1);
  if (free.power <= limit) return free;
  if (kernel.at(lowest).power > limit) return kernel.at(lowest);
  double low = lowest, high = 1;
  for (int i = 0; i < 30; ++i) {
    const double middle = 0.5 * (low + high);
    (kernel.at(middle).power <= limit ? low : high) = middle;
  }
  return kernel.at(low);
}

}  // namespace orrery

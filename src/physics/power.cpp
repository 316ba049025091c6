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

// Energy of arithmetic at a share of the boost clock, over that at the reference clock.
double energy_scale(const PowerCurve& curve, double share) {
  const bool own = curve.reference > Hertz();
  const double clock = own ? share * (curve.boost / curve.reference) : share;
  return std::max(curve.voltage_floor, std::pow(clock, curve.exponent));
}

Watts power_at(double share, Joules switching, Joules traffic, Seconds time,
               const PowerCurve& curve) {
  const Joules work = switching * energy_scale(curve, share) + traffic;
  return curve.floor + curve.clocked * share + work / std::max(time, shortest);
}

Seconds time_at(double share, const Demand& demand, const PowerCurve& curve) {
  const double memory = demand.memory.value() * std::max(1.0, curve.fabric / share);
  return demand.fixed + Seconds(norm(demand.compute.value() / share, memory, demand.overlap));
}

Operating operate_at(Hertz clock, const Demand& demand, const PowerCurve& curve) {
  const double share = clock / curve.boost;
  const Seconds time = time_at(share, demand, curve);
  const Joules switching = demand.switching * demand.toggle;
  return {time, clock, power_at(share, switching, demand.traffic, time, curve),
          clock < curve.boost};
}

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

Watts drawn(Joules switching, Joules traffic, Seconds duration, const PowerCurve& curve,
            Watts limit) {
  return std::min(limit, power_at(1, switching, traffic, duration, curve));
}

Watts waiting_power(const PowerCurve& curve) { return curve.floor + curve.clocked; }

Operating operate(const Demand& demand, const PowerCurve& curve, Watts limit) {
  const auto at = [&](Hertz clock) { return operate_at(clock, demand, curve); };
  if (const Operating free = at(curve.boost); free.power <= limit) return free;
  if (const Operating slowest = at(curve.lowest); slowest.power > limit) return slowest;
  Hertz low = curve.lowest, high = curve.boost;
  for (int i = 0; i < 30; ++i) {
    const Hertz middle = 0.5 * (low + high);
    (at(middle).power <= limit ? low : high) = middle;
  }
  return at(low);
}

}  // namespace orrery

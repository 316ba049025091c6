// What a GPU draws while a kernel runs, and the clock that its power limit leaves.
#pragma once

#include <array>

#include "catalog/gpu.h"
#include "units/quantity.h"

namespace orrery {

/// P = floor + clocked f / boost + (switching s(f) + traffic) / time,
/// s(f) = max(voltage_floor, (f / reference)^exponent).
///
/// The energy of arithmetic goes with the square of the voltage, which falls with the clock until
/// it is as low as the chip allows. Memory has a voltage of its own.
struct PowerCurve {
  Watts floor = {};               ///< beside all work, at any clock
  Watts clocked = {};             ///< likewise, at the boost clock
  Hertz boost = {}, lowest = {};  ///< of the SMs
  Hertz reference = {};           ///< at which the energies of arithmetic hold; zero: boost
  double voltage_floor = 1, exponent = 0;
  double zeros = 1;   ///< see Demand::toggle
  double fabric = 0;  ///< share of the boost clock below which memory slows with the clock
  std::array<JoulesPerFlop, all_precisions.size()> matrix = {};  ///< at the reference clock
  JoulesPerFlop vector = {};                                     ///< fp32, likewise
  JoulesPerByte memory = {};
};

/// Of the catalog's set for this GPU. InputError for an unknown clock or energy.
PowerCurve power_curve_of(const Gpu& gpu);

/// One kernel as the power model sees it.
struct Demand {
  Seconds fixed = {};     ///< no unit works
  Seconds compute = {};   ///< at the boost clock; goes with 1 / clock
  Seconds memory = {};    ///< does not depend on the clock
  double overlap = 4;     ///< exponent of the norm that joins the two; time = fixed + norm
  Joules switching = {};  ///< of the arithmetic, at the reference clock
  Joules traffic = {};    ///< of memory
  /// Share of the switching that the operands' bits cause: 1 as random numbers do,
  /// PowerCurve::zeros where all are zero.
  double toggle = 1;
};

struct Operating {
  Seconds time;
  Hertz clock;
  Watts power;
  bool limited = false;  ///< below the boost clock

  Joules energy() const { return power * time; }
};

/// The highest clock at which the kernel, repeated for long, stays within `limit`; the lowest clock
/// where none does.
Operating operate(const Demand& demand, const PowerCurve& curve, Watts limit);

/// Average over a kernel that takes `duration` for whatever reason. Drivers hold the highest clock
/// within the limit: what it draws at the boost clock, or the limit.
Watts drawn(Joules switching, Joules traffic, Seconds duration, const PowerCurve& curve,
            Watts limit);

/// What a context draws while no kernel runs, its clock up.
Watts waiting_power(const PowerCurve& curve);

/// (a^q + b^q)^(1/q).
double norm(double a, double b, double q);

}  // namespace orrery

// What a GPU draws while a kernel runs, and the clock that its power limit leaves.
#pragma once

#include <array>

#include "catalog/gpu.h"
#include "units/quantity.h"

namespace orrery {

using JoulesPerFlop = decltype(Joules() / Flop());

/// P = floor + switching x s(f) / time + traffic / time, s(f) = max(voltage_floor, (f / boost)^
/// exponent): energy goes with the square of the voltage, which falls with the clock down to a
/// floor.
struct PowerCurve {
  Watts floor;  ///< a kernel runs and does nothing
  Hertz boost, lowest;
  double voltage_floor = 1, exponent = 0;
  std::array<JoulesPerFlop, all_precisions.size()> matrix = {};  ///< at the boost clock
  JoulesPerFlop vector;                                          ///< fp32, likewise
  JoulesPerByte memory;
};

/// Of the catalog's set for this GPU.
PowerCurve power_curve_of(const Gpu& gpu);

/// One kernel as the power model sees it.
struct Demand {
  Seconds fixed;       ///< no unit works
  Seconds compute;     ///< at the boost clock; goes with 1 / clock
  Seconds memory;      ///< does not depend on the clock
  double overlap = 4;  ///< exponent of the norm that joins the two; time = fixed + norm
  Joules switching;    ///< of the arithmetic, at the boost clock
  Joules traffic;      ///< of memory
};

struct Operating {
  Seconds time;
  Hertz clock;
  Watts power;
  bool limited = false;  ///< below the boost clock
};

/// The highest clock at which the kernel, repeated for long, stays within `limit`; the lowest clock
/// where none does.
Operating operate(const Demand& demand, const PowerCurve& curve, Watts limit);

/// (a^q + b^q)^(1/q).
double norm(double a, double b, double q);

}  // namespace orrery

// What to change so that a job that does not fit does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "twin/scenario.h"
#include "units/quantity.h"

namespace orrery {

// One change of a scenario, as flags, and the memory that it would need then.
struct Remedy {
  std::string flags;  // "--recompute full"
  Scenario scenario;
  Bytes needed;
  bool fits;
};

// Single changes that need less memory than `needed` now, from those that change the division and
// leave the result as it is to those that train otherwise (another optimizer) and, for what does
// not fit, less (adapters) or on more GPUs.
std::vector<Remedy> remedies(const Scenario&, Bytes needed);

// "needs 91.2 GiB of 79.6 GiB on stage 0; largest terms activations 60.1 GiB, ...; what fits:
// --recompute full (61.0 GiB), ..."
std::string shortfall(const Scenario&, const std::string& where, Bytes needed, Bytes capacity,
                      const std::vector<std::pair<std::string, Bytes>>& terms);

}  // namespace orrery

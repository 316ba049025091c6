// What to change so that a job that does not fit does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "twin/scenario.h"
#include "units/quantity.h"

namespace orrery {

// One change of a scenario, as flags, and the memory that it would need then.
struct Remedy {
  std::string flags;  // "--recompute full"
  Bytes needed;
  bool fits;
};

// Single changes that need less memory than `needed` now, least memory first.
std::vector<Remedy> remedies(const Scenario&, Bytes needed);

// "needs 91.2 GiB of 79.6 GiB on stage 0: activations 60.1 GiB, ...; --recompute full frees most"
std::string shortfall(const Scenario&, const std::string& where, Bytes needed, Bytes capacity,
                      const std::vector<std::pair<std::string, Bytes>>& terms);

}  // namespace orrery

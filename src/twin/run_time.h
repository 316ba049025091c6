// How long a whole run takes.
#pragma once

#include "twin/scenario.h"
#include "units/quantity.h"

namespace orrery {

// Of all the scenario's tokens, at `step` a step; while the global batch still grows, at the step
// times of smaller batches, between those of a few that are priced. EXPECTs tokens.
Seconds run_time(const Scenario&, Seconds step);

}  // namespace orrery

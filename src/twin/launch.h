// What the way of launching kernels changes of a framework, and when the host holds a step up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/estimate.h"
#include "twin/scenario.h"

namespace orrery {

std::string_view name_of(Launch);

/// Host time a kernel, and of a compiled one the bytes its memory-bound work moves, where those of
/// `framework` are more than `launch` needs.
void change_launch(Framework& framework, Launch launch);
/// What `change_launch` took for granted.
std::vector<Assumption> launch_assumptions(const Framework& changed, Launch launch);
/// What the figures leave out of a job that is launched otherwise than its framework does.
std::vector<std::string> launch_cautions(const Scenario& scenario);

/// What bounds a step: "host" where the GPU waits for launches a twentieth of it or more (less is
/// lost among the errors of a prediction); else the longest of "compute", "communication",
/// "pipeline", "optimizer" and "overhead".
std::string_view bound_of(const Breakdown& time);

/// How much of the step the host holds up and what would hide it; empty where it is no bound.
std::string host_warning(const Scenario& scenario, const Breakdown& time);

}  // namespace orrery

// A better division of the layers over the stages of a pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "twin/twin.h"

namespace orrery {

/// The fastest of the splits that take some layers off the first and the last chunk, which hold the
/// embedding and the head too, and spread the rest evenly. None if the present one is as fast, does
/// not fit, or there is no pipeline. The search goes outwards from the even split and stops where
/// taking more off makes it slower, since a step is as long as its slowest stage.
std::optional<StageSplit> better_split(const Scenario& scenario, const Answer& now);

}  // namespace orrery

// Vision, audio and other towers of a multimodal configuration.
#pragma once

#include <string>
#include <vector>

#include "catalog/architecture.h"
#include "core/json.h"

namespace orrery {

/// The towers of `config` (its vision_config, audio_config, ...) with the projectors that lead to a
/// main stack of `text`'s width; what absent keys mean is added to `defaults`. Empty if it has
/// none. InputError at `place` for a tower of an unknown kind.
std::vector<Tower> towers_from_config(const Json& config, const Architecture& text,
                                      const std::string& place, std::vector<std::string>& defaults);

}  // namespace orrery

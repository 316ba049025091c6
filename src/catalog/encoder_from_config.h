// Models that are not decoders: text encoders, vision transformers, encoder-decoders.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/architecture.h"
#include "core/json.h"

namespace orrery {

/// None if `model_type` is not one of encoder_families(). InputError at `place` for a wrong type or
/// an impossible shape.
std::optional<Architecture> encoder_from_config(const Json& config, const std::string& place);

/// The model_type of each family it reads.
std::vector<std::string> encoder_families();

}  // namespace orrery

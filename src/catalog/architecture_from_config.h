// A model's public configuration (Hugging Face config.json) in the normal form.
#pragma once

#include <string>
#include <vector>

#include "catalog/architecture.h"
#include "core/json.h"

namespace orrery {

/// A decoder, with the towers that feed it, or one of encoder_families(). Every absent key is
/// filled in as the family's own code does, and said in `defaults`. InputError at `place` for a
/// family that is not known, a wrong type or an impossible shape.
Architecture architecture_from_config(const Json& config, const std::string& place);

/// The model_type of each supported family, sorted.
std::vector<std::string> supported_families();

}  // namespace orrery

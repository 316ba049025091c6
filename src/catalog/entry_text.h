// A catalog entry as its file holds it.
#pragma once

#include <string>

#include "core/json.h"

namespace orrery {

/// Indented by two, an object or array of nothing but scalars on one line; ends with a line break.
std::string entry_text(const Json& json);

}  // namespace orrery

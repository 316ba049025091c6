// One language model's configuration, its family known.
#pragma once

#include "catalog/architecture.h"
#include "catalog/families.h"
#include "core/fields.h"

namespace orrery {

/// Without towers. Sizes that a nested text_config leaves out are those of the family's
/// configuration class; a whole configuration must have them. InputError for a wrong type or an
/// impossible shape.
Architecture decoder_from_config(Fields fields, const Family& family);

}  // namespace orrery

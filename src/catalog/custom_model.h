// The `custom` section of a scenario file.
#pragma once

#include "catalog/architecture.h"
#include "core/fields.h"

namespace orrery {

// As docs/formats.md describes it; InputError, with its place, for whatever is wrong. With a
// vocabulary it has an embedding, a final norm and logits, else its input is there and its output
// is summed up.
Architecture custom_model(Fields fields);

}  // namespace orrery

// The table of sources at the end of each catalog entry.
#pragma once

#include "core/fields.h"

namespace orrery {

/// Reads `sources` and checks that every fact of the entry names one of them. InputError otherwise.
void check_sources(Fields& entry);

}  // namespace orrery

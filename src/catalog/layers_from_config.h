// Which layers see a window and which turn queries and keys, and layers as runs of equal ones.
#pragma once

#include <vector>

#include "catalog/architecture.h"
#include "catalog/decoder_values.h"
#include "catalog/families.h"

namespace orrery {

/// Sets window, chunked and rotary of `kinds`, one a layer, as the configuration says or the family
/// does unasked. InputError for a list of the wrong length or an unknown word.
void read_windows(DecoderValues& values, const Family& family, const Architecture& a,
                  std::vector<LayerKind>& kinds);

/// Names the kinds, and sets a.runs; leaves it empty, and sets a.sliding_window, where all layers
/// are ordinary and alike.
void set_runs(Architecture& a, std::vector<LayerKind> kinds);

}  // namespace orrery

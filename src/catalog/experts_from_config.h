// Mixtures of experts: how many, how wide, and which layers have them.
#pragma once

#include <string_view>
#include <vector>

#include "catalog/architecture.h"
#include "catalog/decoder_values.h"

namespace orrery {

/// Sets a.experts and, in the layers that have them, kind.experts (kind.ffn becomes 0). Leaves both
/// alone for a dense family or size. InputError for more active experts than there are, and for
/// experts in a family that has none.
void read_experts(DecoderValues& values, std::string_view family, Architecture& a,
                  std::vector<LayerKind>& kinds);

}  // namespace orrery

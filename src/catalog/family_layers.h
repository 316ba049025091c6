// Families whose layers do not all mix by attention: low rank, Mamba, cross attention.
#pragma once

#include <vector>

#include "catalog/architecture.h"
#include "catalog/decoder_values.h"

namespace orrery {

// Each sets the mixers of `kinds`, one a layer, from the family's own keys, and the shape of what
// mixes. InputError for a list of the wrong length and for a layer that is not there.
void read_bamba_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_granite_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_jamba_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_latent_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_mamba_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_mamba2_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_mllama_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);
void read_nemotron_layers(DecoderValues&, Architecture&, std::vector<LayerKind>& kinds);

}  // namespace orrery

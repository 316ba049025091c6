// Encoders of sound that stand alone.
#pragma once

#include "catalog/architecture.h"
#include "catalog/config_values.h"

namespace orrery {

/// wav2vec 2.0 and HuBERT, with the head over characters where `architectures` says ForCTC. Shapes
/// of the weights: huggingface/transformers, models/wav2vec2. InputError for an impossible shape.
Architecture read_wav2vec2(ConfigValues&);

}  // namespace orrery

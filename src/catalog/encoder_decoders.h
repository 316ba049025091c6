// Models that read a text by an encoder and write by a decoder: T5, BART and their kin, and
// Whisper, which reads sound.
#pragma once

#include <cstdint>

#include "catalog/architecture.h"
#include "catalog/config_values.h"

namespace orrery {

// The main stack is the decoder, whose layers have cross attention; the encoder is its tower.
// Shapes of the weights: huggingface/transformers, models/<family>. InputError for an impossible
// shape.
Architecture read_t5(ConfigValues&);
Architecture read_mt5(ConfigValues&);
Architecture read_bart(ConfigValues&);
Architecture read_mbart(ConfigValues&);
Architecture read_pegasus(ConfigValues&);
Architecture read_m2m_100(ConfigValues&);
Architecture read_marian(ConfigValues&);
Architecture read_whisper(ConfigValues&);

struct WhisperDefaults {
  StackShape shape;
  std::int64_t mel_bins;
};
/// Whisper's encoder, over the frames of 30 s of sound.
Tower whisper_encoder(ConfigValues&, const WhisperDefaults& fallback);

}  // namespace orrery

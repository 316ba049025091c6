// Encoders of images that stand alone, and those that see images and text (CLIP, SigLIP).
#pragma once

#include "catalog/architecture.h"
#include "catalog/config_values.h"

namespace orrery {

// A classifier is counted with its classes; CLIP and SigLIP are a text stack with a vision tower.
// Shapes of the weights: huggingface/transformers, models/<family>. InputError for an impossible
// shape.
Architecture read_vit(ConfigValues&);
Architecture read_deit(ConfigValues&);
Architecture read_beit(ConfigValues&);
Architecture read_dinov2(ConfigValues&);
Architecture read_clip(ConfigValues&);
Architecture read_clip_text(ConfigValues&);
Architecture read_clip_vision(ConfigValues&);
Architecture read_siglip(ConfigValues&);
Architecture read_siglip_vision(ConfigValues&);

}  // namespace orrery

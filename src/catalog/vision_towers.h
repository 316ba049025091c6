// The image encoders that multimodal models look through.
#pragma once

#include "catalog/architecture.h"
#include "catalog/config_values.h"

namespace orrery {

// Each reads a vision_config of its family, without what leads to the main stack: tokens_out are
// the patches. Shapes of the weights: huggingface/transformers, models/<family>. InputError for an
// impossible shape.
Tower clip_vision(ConfigValues&);
Tower siglip_vision(ConfigValues&, bool has_head);  // unless vision_use_head says otherwise
Tower idefics_vision(ConfigValues&);
Tower pixtral_vision(ConfigValues&);
Tower llama4_vision(ConfigValues&);
Tower intern_vision(ConfigValues&);  // of intern_vit_6b and of internvl_vision
Tower mllama_vision(ConfigValues&);
Tower glm4v_vision(ConfigValues&);
Tower qwen2_vision(ConfigValues&);
Tower qwen2_5_vision(ConfigValues&);
Tower qwen3_vision(ConfigValues&);

}  // namespace orrery

// The language model inside a configuration of several parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"

namespace orrery {

struct TextPart {
  Json config;       // with a model_type, and what the whole says of its head
  std::string path;  // where it was: "text_config"; empty where its keys lie beside the towers'
};

/// None if `config` is not one of multimodal_families(). InputError at `place` if its text part is
/// no object.
std::optional<TextPart> text_part(const Json& config, const std::string& place);

/// The model_type of each whole of a language model and towers.
std::vector<std::string> multimodal_families();

}  // namespace orrery

#include "catalog/text_part.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/fields.h"

namespace orrery {
namespace {

struct Whole {
  std::string_view name;  // model_type
  std::string_view text;  // of its text part, if that does not say
};

// Source of each row: configuration_*.py of huggingface/transformers v4.5x for that model_type; of
// internvl_chat and phi3_v the files beside the published weights.
constexpr std::array wholes = {
    Whole{"aya_vision", "cohere2"},
    Whole{"gemma3", "gemma3_text"},
    Whole{"glm4v", "glm4"},
    Whole{"glm4v_moe", "glm4_moe"},
    Whole{"idefics2", "mistral"},
    Whole{"idefics3", "llama"},
    Whole{"internvl", "qwen2"},
    Whole{"internvl_chat", "internlm2"},
    Whole{"llama4", "llama4_text"},
    Whole{"llava", "llama"},
    Whole{"llava_next", "llama"},
    Whole{"llava_next_video", "llama"},
    Whole{"llava_onevision", "qwen2"},
    Whole{"mistral3", "mistral"},
    Whole{"mllama", "mllama_text_model"},
    Whole{"paligemma", "gemma"},
    Whole{"phi3_v", "phi3"},
    Whole{"qwen2_5_vl", "qwen2"},
    Whole{"qwen2_audio", "qwen2"},
    Whole{"qwen2_vl", "qwen2"},
    Whole{"qwen3_vl", "qwen3"},
    Whole{"qwen3_vl_moe", "qwen3_moe"},
    Whole{"smolvlm", "llama"},
    Whole{"vipllava", "llama"},
};

constexpr std::array text_keys = {std::string_view("text_config"), std::string_view("llm_config"),
                                  std::string_view("language_config")};
constexpr std::array tower_keys = {std::string_view("vision_config"),
                                   std::string_view("audio_config")};

const Whole* find_whole(const Json& config) {
  const Json* type = config.find("model_type");
  if (!type || !type->is_string()) return nullptr;
  const auto found = std::ranges::find(wholes, type->as_string(), &Whole::name);
  return found == wholes.end() ? nullptr : &*found;
}

bool given(const Json& config, std::string_view key) {
  const Json* json = config.find(key);
  return json && !json->is_null();
}

// Of a part that does not say whether its head is the table of words, the whole does.
void take_over(Json& text, const Json& whole, std::string_view key) {
  if (!given(text, key) && given(whole, key)) text.set(key, whole[key]);
}

// The keys of the language model lie beside those of the towers.
Json without_towers(const Json& config) {
  Json::Object members;
  for (const auto& [key, value] : config.members()) {
    if (std::ranges::find(tower_keys, key) == tower_keys.end()) members.emplace_back(key, value);
  }
  return Json::object(std::move(members));
}

}  // namespace

std::optional<TextPart> text_part(const Json& config, const std::string& place) {
  // Of another whole nobody knows under which keys its towers lie.
  const Whole* whole = find_whole(config);
  if (!whole) return std::nullopt;
  for (const std::string_view key : text_keys) {
    if (!given(config, key)) continue;
    const Json& part = config[key];
    if (!part.is_object()) FieldPlace{place, std::string(key)}.fail_expected("an object", part);
    TextPart text{part, std::string(key)};
    if (!given(text.config, "model_type")) text.config.set("model_type", whole->text);
    take_over(text.config, config, "tie_word_embeddings");
    return text;
  }
  TextPart text{without_towers(config), ""};
  text.config.set("model_type", whole->text);
  return text;
}

std::vector<std::string> multimodal_families() {
  std::vector<std::string> names;
  for (const Whole& whole : wholes) names.emplace_back(whole.name);
  return names;
}

}  // namespace orrery

#include "catalog/encoder_from_config.h"

#include <string_view>

#include "catalog/config_values.h"
#include "catalog/encoder_decoders.h"
#include "catalog/image_encoders.h"
#include "catalog/speech_encoders.h"
#include "catalog/text_encoders.h"
#include "core/fields.h"

namespace orrery {
namespace {

struct EncoderFamily {
  std::string_view name;  // the Hugging Face model_type
  Architecture (*read)(ConfigValues&);
};

constexpr EncoderFamily known_families[] = {
    {"bart", read_bart},
    {"beit", read_beit},
    {"bert", read_bert},
    {"camembert", read_xlm_roberta},
    {"clip", read_clip},
    {"clip_text_model", read_clip_text},
    {"clip_vision_model", read_clip_vision},
    {"deberta-v2", read_deberta_v2},
    {"deit", read_deit},
    {"dinov2", read_dinov2},
    {"dinov2_with_registers", read_dinov2},
    {"distilbert", read_distilbert},
    {"electra", read_electra},
    {"hubert", read_wav2vec2},
    {"m2m_100", read_m2m_100},
    {"marian", read_marian},
    {"mbart", read_mbart},
    {"modernbert", read_modernbert},
    {"mt5", read_mt5},
    {"nomic_bert", read_nomic_bert},
    {"pegasus", read_pegasus},
    {"roberta", read_roberta},
    {"siglip", read_siglip},
    {"siglip_vision_model", read_siglip_vision},
    {"t5", read_t5},
    {"umt5", read_mt5},
    {"vit", read_vit},
    {"wav2vec2", read_wav2vec2},
    {"whisper", read_whisper},
    {"xlm-roberta", read_xlm_roberta},
};

}  // namespace

std::optional<Architecture> encoder_from_config(const Json& config, const std::string& place) {
  Fields fields(config, place);
  const auto name = fields.required<std::string>("model_type");
  for (const EncoderFamily& family : known_families) {
    if (family.name != name) continue;
    std::vector<std::string> defaults;
    ConfigValues values(std::move(fields), name, defaults);
    Architecture a = family.read(values);
    a.defaults = std::move(defaults);
    refuse_too_many_weights(a, place);
    return a;
  }
  return std::nullopt;
}

std::vector<std::string> encoder_families() {
  std::vector<std::string> names;
  for (const EncoderFamily& family : known_families) names.emplace_back(family.name);
  return names;
}

}  // namespace orrery

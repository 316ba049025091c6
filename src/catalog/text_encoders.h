// Encoders of text: BERT and what followed it.
#pragma once

#include "catalog/architecture.h"
#include "catalog/config_values.h"

namespace orrery {

// Each is the bare encoder (with the pooler that the family's base model has), as its counts are
// published; a head for masked words or classes is not counted, and `defaults` says so. Shapes of
// the weights: huggingface/transformers, models/<family>. InputError for an impossible shape.
Architecture read_bert(ConfigValues&);
Architecture read_roberta(ConfigValues&);
Architecture read_xlm_roberta(ConfigValues&);
Architecture read_electra(ConfigValues&);
Architecture read_distilbert(ConfigValues&);
Architecture read_deberta_v2(ConfigValues&);
Architecture read_modernbert(ConfigValues&);
Architecture read_nomic_bert(ConfigValues&);

}  // namespace orrery

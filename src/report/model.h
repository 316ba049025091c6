// A model for people and for programs: its shape, and what follows from the shape alone.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "catalog/architecture.h"
#include "core/json.h"
#include "report/tables.h"

namespace orrery {

/// Equal kinds of layer together, in the order of their first; counts add up to the depth.
std::vector<LayerRun> folded_runs(const Architecture& model);

/// What a token is trained at is a sequence of `seq_len` tokens.
void print_model(std::ostream& out, const Architecture& model, std::int64_t seq_len,
                 const Style& style);

/// The keys of docs/formats.md.
Json model_json(const Architecture& model, std::int64_t seq_len);

}  // namespace orrery

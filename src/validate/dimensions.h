// The architecture that a row's dimensions describe.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "catalog/architecture.h"
#include "validate/measurement.h"

namespace orrery {

/// Why a row is left out, in words for people.
struct Skip {
  std::string reason;
};

/// "layers = 81 (params_b / 12 h^2, a multiple of pp)", one for each value that a row leaves out.
using Defaults = std::vector<std::string>;

/// A decoder, dense or with experts, or why the row describes none. Fills in, and says so in
/// `defaults`: layers from params_b and hidden, heads of about 128, kv_heads as many as heads,
/// ffn_hidden of the usual ratio, the vocabulary of the framework's own tokenizer. `tp` divides the
/// heads that are filled in.
std::variant<Architecture, Skip> architecture_of(const Measurement& row,
                                                 const std::string& framework, std::int64_t tp,
                                                 std::int64_t pp, Defaults& defaults);

}  // namespace orrery

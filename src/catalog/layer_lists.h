// Lists of a configuration that speak of single layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/decoder_values.h"

namespace orrery {

/// The layers that a list names, counted from 0; `fallback` where there is none. InputError for a
/// layer that is not there.
std::vector<std::size_t> layer_indices(DecoderValues& values, std::string_view key,
                                       std::int64_t layers,
                                       const std::vector<std::int64_t>& fallback);

/// One word, or number, a layer; none where there is no list, or an empty one. InputError for a
/// list of another length.
std::optional<std::vector<std::string>> layer_words(DecoderValues& values, std::string_view key,
                                                    std::int64_t layers);
std::optional<std::vector<std::int64_t>> layer_numbers(DecoderValues& values, std::string_view key,
                                                       std::int64_t layers);

}  // namespace orrery

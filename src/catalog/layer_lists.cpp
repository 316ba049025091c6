#include "catalog/layer_lists.h"

#include <algorithm>

namespace orrery {
namespace {

template <class T>
std::optional<std::vector<T>> one_a_layer(DecoderValues& values, std::string_view key,
                                          std::int64_t layers) {
  auto list = values.fields().optional<std::vector<T>>(key);
  if (!list || list->empty()) return std::nullopt;
  if (static_cast<std::int64_t>(list->size()) != layers) {
    values.fail(
        key, std::to_string(list->size()) + " entries for " + std::to_string(layers) + " layers");
  }
  return list;
}

}  // namespace

std::vector<std::size_t> layer_indices(DecoderValues& values, std::string_view key,
                                       std::int64_t layers,
                                       const std::vector<std::int64_t>& fallback) {
  auto list = values.fields().optional<std::vector<std::int64_t>>(key).value_or(fallback);
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  std::vector<std::size_t> indices;
  for (const std::int64_t layer : list) {
    if (layer < 0 || layer >= layers) {
      values.fail(key, "there is no layer " + std::to_string(layer) + " of " +
                           std::to_string(layers) + ", counted from 0");
    }
    indices.push_back(static_cast<std::size_t>(layer));
  }
  return indices;
}

std::optional<std::vector<std::string>> layer_words(DecoderValues& values, std::string_view key,
                                                    std::int64_t layers) {
  return one_a_layer<std::string>(values, key, layers);
}

std::optional<std::vector<std::int64_t>> layer_numbers(DecoderValues& values, std::string_view key,
                                                       std::int64_t layers) {
  return one_a_layer<std::int64_t>(values, key, layers);
}

}  // namespace orrery

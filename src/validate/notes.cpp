#include "validate/notes.h"

#include "validate/labels.h"

namespace orrery {

Notes::Notes(std::string_view other) : words_(words_of(other)) {}

bool Notes::say(std::string_view part) const {
  return words_.find(" " + std::string(part)) != std::string::npos;
}

std::optional<std::int64_t> Notes::number(std::string_view phrase) const {
  const auto at = words_.find(" " + std::string(phrase) + " ");
  if (at == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = at + phrase.size() + 2; i < words_.size() && value < 1'000'000; ++i) {
    if (words_[i] < '0' || words_[i] > '9') break;
    value = value * 10 + (words_[i] - '0');
  }
  return value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::string> Notes::offload() const {
  if (say("offload optimizer true ") || say("offload optimizer y ")) {
    return say("params true ") || say("params y ") ? "parameters" : "optimizer";
  }
  if (say("offload optimizer ") || say("no offload ") || say("without offload ")) {
    return std::nullopt;
  }
  if (say("offload false ") || !say("offload ")) return std::nullopt;
  return "parameters";
}

}  // namespace orrery

#include "core/error.h"

#include <utility>

namespace orrery {

InputError::InputError(std::string problem_, std::string reason_, std::string suggestion_,
                       std::string place_)
    : problem(std::move(problem_)),
      reason(std::move(reason_)),
      suggestion(std::move(suggestion_)),
      place(std::move(place_)) {
  if (!place.empty()) message_ += place + ": ";
  message_ += problem;
  if (!reason.empty()) message_ += " (" + reason + ")";
  if (!suggestion.empty()) message_ += "; " + suggestion;
}

InputError InputError::within(const std::string& outer) const {
  return InputError(problem, reason, suggestion, place.empty() ? outer : outer + ": " + place);
}

void broken_contract(const char* kind, const char* condition, const char* file, int line) {
  throw ContractError(std::string(file) + ":" + std::to_string(line) + ": " + kind + "(" +
                      condition + ") does not hold");
}

}  // namespace orrery

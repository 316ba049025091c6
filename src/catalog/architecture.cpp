#include "catalog/architecture.h"

namespace orrery {

std::string_view to_text(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::relu:
      return "relu";
    case Activation::squared_relu:
      return "squared_relu";
    case Activation::swiglu:
      return "swiglu";
    case Activation::geglu:
      return "geglu";
  }
  return "";
}

std::string_view to_text(Norm norm) { return norm == Norm::layer_norm ? "layer_norm" : "rms_norm"; }

std::string_view to_text(Positions positions) {
  switch (positions) {
    case Positions::learned:
      return "learned";
    case Positions::rotary:
      return "rotary";
    case Positions::alibi:
      return "alibi";
    case Positions::none:
      return "none";
  }
  return "";
}

}  // namespace orrery

#include "catalog/architecture.h"

namespace orrery {

std::vector<LayerRun> layer_runs(const Architecture& architecture) {
  if (!architecture.runs.empty()) return architecture.runs;
  return {{{.window = architecture.sliding_window, .ffn = architecture.ffn}, architecture.layers}};
}

std::int64_t expert_layers(const Architecture& architecture) {
  std::int64_t layers = 0;
  for (const LayerRun& run : architecture.runs) layers += run.kind.experts ? run.count : 0;
  return layers;
}

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

std::string_view to_text(Mixer mixer) {
  switch (mixer) {
    case Mixer::attention:
      return "attention";
    case Mixer::latent_attention:
      return "latent attention";
    case Mixer::selective_scan:
      return "selective scan";
    case Mixer::dual_scan:
      return "dual scan";
    case Mixer::none:
      return "none";
  }
  return "";
}

}  // namespace orrery

#include "plan/strategy.h"

namespace orrery {

std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::gpipe:
      return "gpipe";
    case Schedule::one_f_one_b:
      return "1f1b";
    case Schedule::interleaved:
      return "interleaved";
    case Schedule::zero_bubble_h1:
      return "zb-h1";
    case Schedule::zero_bubble_v:
      return "zb-v";
    case Schedule::dual_pipe:
      return "dualpipe";
  }
  return "";
}

std::string_view name_of(ContextKind kind) {
  switch (kind) {
    case ContextKind::all_gather:
      return "all-gather";
    case ContextKind::ring:
      return "ring";
    case ContextKind::ulysses:
      return "ulysses";
  }
  return "";
}

std::string_view name_of(Offload offload) {
  switch (offload) {
    case Offload::none:
      return "none";
    case Offload::optimizer:
      return "optimizer";
    case Offload::parameters:
      return "parameters";
    case Offload::activations:
      return "activations";
  }
  return "";
}

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::operators:
      return "operators";
    case Recompute::full:
      return "full";
  }
  return "";
}

bool layers_fit(std::int64_t layers, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t slots = pp * vpp;
  if (layers % slots == 0) return true;
  return pp > 1 && (layers + 2) % slots == 0;
}

}  // namespace orrery

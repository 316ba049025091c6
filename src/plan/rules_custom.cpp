// Rules of models described by hand: their operators say how far they can be divided.
#include <set>

#include "plan/judge.h"

namespace orrery {
namespace {

// Of matrices, the sides that tensor parallelism divides.
std::set<std::int64_t> divided_widths(const Custom& custom) {
  std::set<std::int64_t> widths;
  for (const CustomLayer& layer : custom.layers) {
    for (const CustomOp& op : layer.ops) {
      const auto* matmul = std::get_if<CustomMatmul>(&op.what);
      if (!matmul || matmul->split == CustomSplit::none) continue;
      widths.insert(matmul->split == CustomSplit::columns ? matmul->out : matmul->in);
    }
  }
  return widths;
}

void judge_widths(Judge& judge) {
  const std::set<std::int64_t> widths = divided_widths(judge.at.model.custom);
  const std::int64_t tp = judge.s.tp;
  if (tp > 1 && widths.empty()) {
    judge.add("tp is {} and no operator of {} is divided (split: columns, then rows); tp: 1", tp,
              judge.at.model.name);
  }
  const auto fits = [&](std::int64_t ranks) {
    return std::all_of(widths.begin(), widths.end(),
                       [&](std::int64_t width) { return width % ranks == 0; });
  };
  for (const std::int64_t width : widths) {
    if (width % tp == 0) continue;
    judge.add("tp {} does not divide the width {} of {}; tp: {}", tp, width, judge.at.model.name,
              nearest(tp, *widths.begin(), [&](auto ranks) {
                return fits(ranks) && judge.divides_gpus(ranks, judge.s.pp * judge.s.cp);
              }));
  }
}

void judge_untrained(Judge& judge) {
  const Strategy& s = judge.s;
  if (s.pp > 1) {
    judge.add("pp is {} and nothing is trained (a pipeline's stages exchange gradients); pp: 1",
              s.pp);
  }
  if (s.zero == Zero::optimizer || s.zero == Zero::gradients) {
    judge.add(
        "zero is {} and nothing is trained (there is neither optimizer nor gradient); zero: 0",
        static_cast<int>(s.zero));
  }
  if (s.recompute != Recompute::none) {
    judge.add("activations are recomputed and nothing is trained; recompute: none");
  }
  if (s.offload != Offload::none) {
    judge.add("state is offloaded and nothing is trained; offload: none");
  }
}

}  // namespace

void judge_custom(Judge& judge) {
  if (judge.s.cp > 1) {
    judge.add("cp is {} and the operators of {} do not say what context ranks exchange; cp: 1",
              judge.s.cp, judge.at.model.name);
  }
  judge_widths(judge);
  if (!judge.at.model.custom.trained) judge_untrained(judge);
}

}  // namespace orrery

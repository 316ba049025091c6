// What the files of rules share: a list that grows by messages, and the values nearest to a wrong
// one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/rules.h"

namespace orrery {

// "the nearest valid values are 2 and 4": those below and above `wrong` that are `valid`, up to
// `limit`.
template <class Valid>
std::string nearest(std::int64_t wrong, std::int64_t limit, Valid valid) {
  std::vector<std::string> found;
  for (std::int64_t below = std::min(wrong - 1, limit); below >= 1; --below) {
    if (!valid(below)) continue;
    found.push_back(std::to_string(below));
    break;
  }
  for (std::int64_t above = std::max<std::int64_t>(wrong + 1, 1); above <= limit; ++above) {
    if (!valid(above)) continue;
    found.push_back(std::to_string(above));
    break;
  }
  if (found.empty()) return "none is valid here";
  return fmt::format("the nearest valid {} {}", found.size() > 1 ? "values are" : "value is",
                     fmt::join(found, " and "));
}

// The multiples of `step` around `wrong`.
std::string nearest_multiple(std::int64_t wrong, std::int64_t step);

// "1, 2 and 4".
std::string listed(const std::vector<std::int64_t>& values);

// One strategy on its way through the rules.
class Judge {
 public:
  Judge(const Strategy& strategy, const Setting& setting) : s(strategy), at(setting) {}

  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    found.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  // Whether `value` ranks beside `others` divide the GPUs; nothing does where the others do not.
  bool divides_gpus(std::int64_t value, std::int64_t others) const {
    return at.gpus % others != 0 || at.gpus / others % value == 0;
  }

  const Strategy& s;
  const Setting& at;
  std::vector<std::string> found;
};

void judge_tensor(Judge&);     // tp over heads and widths
void judge_context(Judge&);    // cp and the sequence
void judge_experts(Judge&);    // ep and etp
void judge_layers(Judge&);     // pp and vpp over layers
void judge_schedule(Judge&);   // vpp and micro-batches
void judge_custom(Judge&);     // what operators described by hand allow
void judge_framework(Judge&);  // what it has and has not
void judge_eight_bit(Judge&);  // shapes of FP8 products

std::string nearest_tp(const Judge&);
std::string nearest_pp(const Judge&);

// Parts of the model that a pipeline's chunks hold; a bidirectional pipeline holds each twice.
std::int64_t parts_of(const Strategy&);

}  // namespace orrery

// What a kernel model answers: how long, what held it up, at which clock and power.
#pragma once

#include <string_view>

#include "units/quantity.h"

namespace orrery {

enum class Bound { latency, compute, feed, memory, power, links };
constexpr std::string_view to_text(Bound bound) {
  constexpr std::string_view names[] = {"latency", "compute", "feed", "memory", "power", "links"};
  return names[static_cast<int>(bound)];
}

struct KernelTime {
  Seconds time;
  Bound bound = Bound::latency;
  Hertz clock;
  Watts power;
  Flop flop;    // what the operator needs, nothing repeated
  Bytes bytes;  // to and from HBM, each operand once

  // Where the time goes at the clock above. They overlap: their sum is above `time`.
  Seconds start, compute, feed, memory;
};

}  // namespace orrery

// The order in which a pipeline stage runs forward and backward micro-batches of its chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/strategy.h"

namespace orrery {

struct Step {
  bool forward;
  std::int32_t chunk;
  bool edge = false;  // the chunk's first forward or last backward of the step
  bool operator==(const Step&) const = default;
};

// Steps of `stage`: micro-batches x chunks forwards and as many backwards, every forward before its
// backward. GPipe: Huang 2019. 1F1B: Narayanan 2021 (arXiv 2104.04473) figure 4; interleaved ibid.
// section 2.2, which needs micro_batches to be a multiple of pp.
std::vector<Step> steps(Schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches,
                        std::int64_t stage);

// A sequence with its repetitions folded: unfold(fold(s)) == s, and its size grows with the kinds
// of repetition, not with their count.
struct Folded {
  std::int64_t count = 1;
  std::vector<Folded> body;  // empty: one step
  Step step = {};
};
std::vector<Folded> fold(const std::vector<Step>&);
std::vector<Step> unfold(const std::vector<Folded>&);

}  // namespace orrery

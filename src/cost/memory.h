// The most that a rank holds at once, and what it is made of at that moment.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/program.h"

namespace orrery {

inline constexpr std::size_t memory_terms = 9;
using Footprint = std::array<Bytes, memory_terms>;  // by MemoryTerm
Bytes total(const Footprint&);                      // of the GPU: without what lies on the host

struct Peak {
  ClassId at;           // the class that holds most; the first of equals
  Footprint footprint;  // its terms at its peak instant; the first of equals
  IdVector<ClassId, Footprint> by_class;
};

// Walks Alloc and Free in program order with loops folded: exact, in time linear in the Program's
// size. A Free of what was never allocated breaks a contract.
Peak peak_memory(const Program&);

// What a rank holds of one buffer at its peak instant.
struct HeldBuffer {
  std::string name;
  MemoryTerm term;
  std::int64_t instances;
  Bytes size;  // of all of them
};

// Every buffer held on the GPU at the instant of `peak_memory`, largest first; their sizes add up
// to the peak.
std::vector<HeldBuffer> held_at_peak(const RankClass&);

}  // namespace orrery

// The most that a rank holds at once, and what it is made of at that moment.
#pragma once

#include <array>

#include "plan/program.h"

namespace orrery {

inline constexpr std::size_t memory_terms = 8;
using Footprint = std::array<Bytes, memory_terms>;  // by MemoryTerm
Bytes total(const Footprint&);

struct Peak {
  ClassId at;           // the class that holds most; the first of equals
  Footprint footprint;  // its terms at its peak instant; the first of equals
  IdVector<ClassId, Footprint> by_class;
};

// Walks Alloc and Free in program order with loops folded: exact, in time linear in the Program's
// size. A Free of what was never allocated breaks a contract.
Peak peak_memory(const Program&);

}  // namespace orrery

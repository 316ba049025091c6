// The fastest strategies for a job, and why each next one lost.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "search/space.h"
#include "twin/found.h"

namespace orrery {

struct SearchOptions {
  std::size_t keep = 5;
  unsigned threads = 0;                                                  // 0: one a core
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // from one thread
};

// Same answer for any number of threads. The scenario gives whatever the space leaves fixed.
Found search(const Scenario& scenario, const Space& space, const EvidenceTable& evidence,
             const SearchOptions& options = {});

// Weights, gradients and optimizer, evenly divided: the fullest rank never needs less. Nothing of
// models with experts or towers, of frozen weights and of offload.
Bytes least_memory(const Scenario& scenario);

// Where `other` takes longer than `best`, in words; what it needs more, if it takes no longer.
std::string why_slower(const Answer& best, const Answer& other);

}  // namespace orrery

// The fastest strategies for a job, and why each next one lost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/space.h"
#include "twin/twin.h"

namespace orrery {

struct Candidate {
  Scenario scenario;
  Answer answer;
  std::string lost;  // against the best: "+3.1 % bubble"; of the best itself: empty
};

struct Found {
  std::vector<Candidate> best;  // fastest first
  std::int64_t searched = 0;    // strategies looked at, pruned ones included
  std::map<std::string, std::int64_t> pruned;  // by reason
  std::optional<Candidate> nearest_miss;       // the least memory, where nothing fits
};

struct SearchOptions {
  std::size_t keep = 5;
  unsigned threads = 0;  // 0: one a core
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // from one thread
};

// Same answer for any number of threads. `base` gives whatever the space leaves fixed.
Found search(const Scenario& base, const Space& space, const EvidenceTable& evidence,
             const SearchOptions& options = {});

// Where `other` takes longer than `best`, in words; what it needs more, if it takes no longer.
std::string why_slower(const Answer& best, const Answer& other);

}  // namespace orrery

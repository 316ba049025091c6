// What a search over strategies answers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "twin/twin.h"

namespace orrery {

struct Candidate {
  Scenario scenario;
  Answer answer;
  std::string lost;  // "2.0 % slower: pipeline bubble 1.62 → 6.63 s"; of the best: empty
};

struct Found {
  std::vector<Candidate> best;                 // fastest first
  std::int64_t searched = 0;                   // strategies looked at, pruned ones included
  std::map<std::string, std::int64_t> pruned;  // by reason
  std::optional<Candidate> nearest_miss;       // the least memory, where nothing fits
};

}  // namespace orrery

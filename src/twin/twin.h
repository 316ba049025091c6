// The door: a scenario in, a priced answer out.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "cost/memory.h"
#include "plan/rules.h"
#include "twin/evidence.h"
#include "twin/scenario.h"

namespace orrery {

struct Band {
  Seconds low, high;  // of the step time
};

// A kernel of the busiest rank, over one step.
struct KernelShare {
  std::string name;
  std::int64_t launches;
  Seconds time;
};

struct Answer {
  bool feasible = false;
  bool priced = false;  // false: the strategy breaks a rule and nothing below is known
  std::string reason;   // why not feasible
  std::vector<std::string> warnings;
  Seconds step;
  double tokens_per_s = 0, tokens_per_s_per_gpu = 0;
  double model_flops_per_gpu = 0;  // FLOP/s
  double mfu = 0, hfu = 0;         // against `peak`
  FlopPerSecond peak;              // dense, of the scenario's precision
  Peak memory;                     // framework context and allocator slack included
  IdVector<ClassId, std::string> classes;
  bool shards_weights = false;  // ZeRO-3
  BytesPerSecond network;       // of a GPU between nodes; 0: one node
  Bytes capacity;
  Breakdown time;
  Watts gpu_power;
  Joules step_energy;                // all GPUs
  std::optional<Dollars> step_cost;  // all GPUs
  std::optional<Seconds> run_time;   // of the whole run, when tokens are given
  std::optional<Dollars> run_cost;
  std::optional<Dollars> cost_per_million_tokens;
  TrackRecord evidence;
  Band band;
  std::vector<KernelShare> kernels;  // of the busiest class, longest first

  Bytes needed() const { return total(memory.footprint); }
};

// Lowers the scenario and prices it in closed form; if it does not fit, finds what would help most.
Answer predict(const Scenario&, const EvidenceTable& = {});

// What to do for a job that does not fit.
enum class Unfit {
  explain,  // price it, and look for help
  price,    // price it
  leave,    // its memory is enough: `priced` is false
};
Answer price_scenario(const Scenario&, const EvidenceTable& = {}, Unfit = Unfit::price);

// What the scenario's strategy is judged against; refers to the scenario.
Setting setting_of(const Scenario&);
// Memory alone, in a fraction of the time. EXPECTs a strategy that keeps the rules.
Peak scenario_memory(const Scenario&);
// What the driver lists, less what a context and NCCL hold beside the framework's own figures.
Bytes capacity_of(const Gpu&, const Framework&);

// The keys of docs/formats.md.
Json to_json(const Scenario&, const Answer&);
Json to_json(const Strategy&);
Json kernels_json(const Answer&);  // all of them, for --explain

}  // namespace orrery

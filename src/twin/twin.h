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

// Share of the card from which a peak is no longer safe: measured peaks of jobs that were predicted
// to need less ran out (docs/formats.md, memory).
inline constexpr double yellow_from = 0.92;
enum class Fill { green, yellow, red };
std::string_view name_of(Fill);

// Layers of each chunk of a pipeline in order of execution, and the step that they make.
struct StageSplit {
  std::vector<std::int64_t> stage_layers;
  Seconds step;
};

// A change of the scenario, as flags, and what comes of it.
struct Fix {
  std::string flags;  // "--recompute full"
  Bytes peak;
  bool fits;
  double step_ratio;  // its step time over the present one
};

// Why the fullest rank holds what it holds, and what may be done.
struct Autopsy {
  std::vector<HeldBuffer> buffers;  // at its peak instant, adding up to the peak
  std::vector<Fix> fixes;           // each frees some; those that fit first, then by speed
  std::optional<StageSplit> split;  // of a pipeline's layers, that is faster
  std::optional<std::int64_t> longest_sequence, largest_micro_batch;  // that fit; none: none does
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
  std::string kind;             // of job, as evidence groups them
  BytesPerSecond network;       // of a GPU between nodes; 0: one node
  Bytes capacity;
  Bytes host;                     // of one node, beside its GPUs' (offload)
  std::optional<Bytes> balanced;  // the peak if every expert had its even share of the tokens
  std::optional<Autopsy> autopsy;
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
  Fill fill() const;
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
// Every buffer of a class at its peak instant, and a last one for what the framework holds beside.
std::vector<HeldBuffer> buffers_at_peak(const Scenario&, ClassId);
// Rows of the vocabulary as the framework stores them.
std::int64_t padded_vocab(const Scenario&);
// What the driver lists, less what a context and NCCL hold beside the framework's own figures.
Bytes capacity_of(const Gpu&, const Framework&);

// The keys of docs/formats.md.
Json to_json(const Scenario&, const Answer&);
Json to_json(const Strategy&);
Json kernels_json(const Answer&);  // all of them, for --explain

}  // namespace orrery

// How far answers like this one were from published measurements: data/evidence.json, which
// `orrery validate --write-evidence` writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/gpu.h"
#include "core/json.h"
#include "units/quantity.h"

namespace orrery {

struct Cluster;
struct Scenario;

// A published row that was predicted, by what makes jobs alike.
struct EvidenceRow {
  std::string id;
  std::int64_t gpus;
  double parameters;
  std::int64_t seq_len;
  std::string gpu;              // catalog name
  double network = 0;           // bytes a second a GPU between its nodes; 0: one node
  bool shards_weights = false;  // ZeRO-3
};

// Rows of one GPU architecture, framework, precision and kind of job. Errors are |predicted /
// measured - 1| of the step time.
struct EvidenceGroup {
  std::string architecture, framework, precision, kind;
  double median_abs_error, p80_abs_error;
  std::vector<EvidenceRow> rows;

  std::string name() const;  // "hopper megatron bf16 pretrain"
};

using EvidenceTable = std::vector<EvidenceGroup>;

// What the table says of one answer.
struct TrackRecord {
  std::string group;
  std::int64_t n = 0;
  double median_abs_error = 0;
  std::string nearest;        // id of the published row most like it; empty: none
  bool extrapolated = false;  // no such group, or its nearest row is far away
  double spread = 0;          // of the step time: step / (1 + spread) to step / (1 - spread)
};

// Spread where no group matches. The worst fifth of predictions for kinds of job that were fitted
// lies beyond 10 to 15 %; twice that is claimed for a kind that was never seen.
inline constexpr double unseen_spread = 0.30;
// A few rows say little of the next one: as many rows of `unseen_spread` are counted with a
// group's.
inline constexpr double unseen_rows = 2;
// A job this many doublings away from the nearest row (of GPUs, parameters, sequence length and
// network rate together) is extrapolated, and its spread doubles. Another GPU of the architecture,
// and weights sharded here and not there, are that far away by themselves.
inline constexpr double far_doublings = 4;

// What makes jobs of one framework differ in kind: "pretrain", "lora experts", "sft offload".
std::string kind_of(const Scenario&);

// What a GPU may send to other nodes across the fabric's core; 0 where there is one node.
BytesPerSecond network_rate(const Cluster&);

TrackRecord track_record(const EvidenceTable&, const Scenario&);

// An empty table if the file is not there.
EvidenceTable load_evidence(const std::string& data_dir);
EvidenceTable evidence_from_json(const Json&, const std::string& place);
Json to_json(const EvidenceTable&);

}  // namespace orrery

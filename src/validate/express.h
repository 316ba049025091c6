// A published row as a question for the door.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "twin/scenario.h"
#include "validate/dimensions.h"
#include "validate/measurement.h"

namespace orrery {

struct Expressed {
  Request request;
  std::string gpu, framework;  // names of the catalog
  std::int64_t gpus = 0;
  std::int64_t seq_len = 0;                    // of the longest sample where they differ
  std::optional<double> tokens_per_s_per_gpu;  // measured
  std::string without_throughput;              // why there is none
  Defaults defaults;                           // all that the row left out
};

/// A row becomes a question if it is training or fine-tuning of a decoder with its dimensions, GPU,
/// number of GPUs, sequence length and batch stated, and a layout that multiplies out. What else is
/// blank takes the default that its framework documents; nothing depends on the row's id.
std::variant<Expressed, Skip> express(const Measurement& row);

}  // namespace orrery

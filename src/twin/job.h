// What is trained, from what and with which optimizer: the part of a scenario that is neither model
// nor machine nor division.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "units/quantity.h"

namespace orrery {

enum class Task {
  pretrain,
  sft,    // all weights of a trained model again (unless some are frozen)
  lora,   // adapters beside frozen weights (arXiv 2106.09685)
  qlora,  // the same, the frozen matrices in 4 bits (arXiv 2305.14314)
};

enum class Optimizer {
  adam,       // two moments in fp32 (arXiv 1711.05101)
  adam_bf16,  // two moments in bf16 (DeepSeek-V3, arXiv 2412.19437, section 3.3.2)
  adam8bit,   // two moments in blocks of 8 bits (arXiv 2110.02861)
  adafactor,  // rows and columns of the second moment only (arXiv 1804.04235)
  muon,       // one fp32 momentum (github.com/KellerJordan/Muon)
  sgd,        // one fp32 momentum
};

// Copies, a byte a weight each, of the layers' matrices in fp8 that stay from step to step beside
// the weights.
enum class Fp8Copies {
  none = 0,
  weights = 1,     // one
  transposed = 2,  // and its transpose, which the backward pass of Hopper's fp8 products reads
};

// The global batch grows from `start` by `step` sequences till it is the strategy's, evenly over
// `tokens`.
struct BatchRamp {
  std::int64_t start, step;
  Tokens tokens;
};

struct Job {
  Task task = Task::pretrain;
  Optimizer optimizer = Optimizer::adam;
  std::int64_t lora_rank = 0;  // 0: no adapters
  bool adapts_attention = true, adapts_feed_forward = true;
  bool trains_embeddings = false;  // though the stack is frozen
  bool freezes_stack = false, freezes_towers = false, freezes_projector = false;
  double documents = 1;    // packed into a sequence
  double padding = 0;      // share of a sequence's tokens that are not trained
  double images = 1;       // a sequence, of each tower
  double expert_load = 1;  // copies that the fullest rank computes over the even share
  Fp8Copies fp8_copies = Fp8Copies::none;
  std::optional<BatchRamp> ramp;

  bool trains_all() const { return !freezes_stack && !freezes_towers && !freezes_projector; }
};

std::string_view name_of(Task);
std::string_view name_of(Optimizer);
std::string_view name_of(Fp8Copies);

// Bytes a parameter of an optimizer's moments, a master copy of the weights not included. Of
// Adafactor the rows and columns are less than 0.01 bytes a parameter of any matrix that matters;
// the 8-bit moments' scales, one fp32 number a block of 256 each, are 0.03.
double moment_bytes(Optimizer);

// Of adapters, where none is given.
inline constexpr std::int64_t usual_lora_rank = 16;

}  // namespace orrery

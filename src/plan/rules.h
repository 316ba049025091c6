// The rules that a division of a job must keep: those of arithmetic, those of its framework, and
// the traps that no framework refuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/architecture.h"
#include "catalog/framework_rules.h"
#include "plan/strategy.h"

namespace orrery {

// What a strategy is judged against.
struct Setting {
  const Architecture& model;
  const FrameworkRules& rules;
  std::int64_t gpus = 1;
  std::int64_t gpus_per_node = 8;
  bool eight_bit = false;       // the linear layers' products are FP8
  bool fused_attention = true;  // scores never reach memory
};

// Every rule that `strategy` breaks, each with the nearest values that keep it; empty: valid.
std::vector<std::string> broken_rules(const Strategy&, const Setting&);

// What is allowed and yet costs more, or means something else, than it seems to; one line each,
// with what to do. For strategies that break no rule.
std::vector<std::string> traps(const Strategy&, const Setting&);

// Layers of each of `parts`, equal but at both ends, which hold embedding and head and so no more
// layers than the others: 46 in 4 are 11/12/12/11. Empty where an end would hold none.
std::vector<std::int64_t> uneven_ends(std::int64_t layers, std::int64_t parts);

// Rows of the vocabulary as a framework stores them: a multiple of `multiple` x tp (Megatron-LM
// pads to 128 x tp; --make-vocab-size-divisible-by).
std::int64_t padded_vocabulary(std::int64_t vocab, std::int64_t tp, std::int64_t multiple);

// Whether Transformer Engine multiplies an FP8 matrix of this shape: rows are multiples of 8 and
// columns of 16 (NVIDIA/TransformerEngine#232 and #1422). A matrix of a training step meets it both
// ways round, since its gradient's product reads it transposed.
constexpr bool eight_bit_shape(std::int64_t rows, std::int64_t columns) {
  return rows % 8 == 0 && columns % 16 == 0;
}

// Why a global batch is not micro-batch x accumulation x replicas, with the nearest that are; none
// where it is. DeepSpeed refuses such a configuration (OpenRLHF/OpenRLHF#346).
std::optional<std::string> batch_misfit(std::int64_t global_batch, std::int64_t micro_batch,
                                        std::int64_t accumulation, std::int64_t replicas);

}  // namespace orrery

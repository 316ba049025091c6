// How a training job is divided over ranks, and the rules a division must keep.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/architecture.h"

namespace orrery {

enum class Schedule { gpipe, one_f_one_b, interleaved };
enum class Recompute {
  none,
  selective,  // the attention core (no saving where attention is fused)
  operators,  // torchtitan's selective(op): every second matrix product and all cheap operators
  full,       // each layer keeps its input only
};

// What ZeRO divides over the data-parallel ranks: 0 nothing, 1 optimizer, 2 + gradients, 3 +
// weights.
enum class Zero { none = 0, optimizer = 1, gradients = 2, weights = 3 };

struct Strategy {
  std::int64_t tp = 1, pp = 1, vpp = 1, dp = 1, cp = 1;
  std::int64_t micro_batch = 1;   // sequences
  std::int64_t global_batch = 1;  // sequences a step
  std::int64_t seq_len = 1;       // tokens a sequence
  bool sequence_parallel = false;
  Zero zero = Zero::none;
  std::int64_t shard_ranks = 0;  // ranks that ZeRO shards over; 0: all of dp (and cp)
  Recompute recompute = Recompute::none;
  double recompute_share = 1;  // of the layers
  bool equal_chunks = true;    // of layers: frameworks that cut them so refuse any other count
  Schedule schedule = Schedule::one_f_one_b;

  std::int64_t ranks() const { return tp * pp * dp * cp; }
  std::int64_t micro_batches() const { return global_batch / (dp * micro_batch); }
};

std::string_view name_of(Schedule);
std::string_view name_of(Recompute);

// Whether whole layers divide evenly over pp x vpp chunks, alone or with the embedding and the head
// taking the place of one layer each (Llama 3 405B: 126 layers in 128 places; arXiv 2407.21783,
// section 3.3.2).
bool layers_fit(std::int64_t layers, std::int64_t pp, std::int64_t vpp);

// Every rule that `strategy` breaks on `gpus` GPUs, each with the nearest values that keep it;
// empty: valid.
std::vector<std::string> broken_rules(const Strategy&, const Architecture&, std::int64_t gpus);

}  // namespace orrery

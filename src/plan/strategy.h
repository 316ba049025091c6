// How a training job is divided over ranks; plan/rules.h says which divisions are valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Schedule {
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble_h1,  // arXiv 2401.10241, section 3: weight gradients fill the bubble
  zero_bubble_v,   // arXiv 2405.15362: two chunks a stage, placed as a V
  dual_pipe,       // DeepSeek-V3 (arXiv 2412.19437), section 3.2.1: micro-batches from both ends
};
enum class Recompute {
  none,
  selective,  // the attention core (no saving where attention is fused)
  operators,  // torchtitan's selective(op): every second matrix product and all cheap operators
  full,       // each layer keeps its input only
};

// What ZeRO divides over the data-parallel ranks: 0 nothing, 1 optimizer, 2 + gradients, 3 +
// weights.
enum class Zero { none = 0, optimizer = 1, gradients = 2, weights = 3 };

// How context ranks share attention.
enum class ContextKind {
  all_gather,  // keys and values of all ranks at once (Llama 3, arXiv 2407.21783, 3.3.2)
  ring,        // passed on step by step, beside the attention of the last (arXiv 2310.01889)
  ulysses,     // all-to-all from tokens to heads and back (DeepSpeed-Ulysses, arXiv 2309.14509)
};

// What lies in host memory (or on NVMe) instead of the GPU's.
enum class Offload {
  none,
  optimizer,    // its state, and the update on the host's cores
  parameters,   // that, and the weights, fetched for each pass
  activations,  // what the forward pass keeps, brought back before the backward pass
};

struct Strategy {
  std::int64_t tp = 1, pp = 1, vpp = 1, dp = 1, cp = 1;
  // Of the experts: their groups lie across tp, cp and dp. Each expert's matrices are divided by
  // etp ranks.
  std::int64_t ep = 1, etp = 1;
  ContextKind context_kind = ContextKind::all_gather;
  Offload offload = Offload::none;
  bool offload_to_nvme = false;
  std::vector<std::int64_t> stage_layers;  // layers of each chunk in order of execution, pp x vpp;
                                           // empty: divided evenly
  std::int64_t micro_batch = 1;            // sequences
  std::int64_t global_batch = 1;           // sequences a step
  std::int64_t seq_len = 1;                // tokens a sequence
  bool sequence_parallel = false;
  Zero zero = Zero::none;
  std::int64_t shard_ranks = 0;  // ranks that ZeRO shards over; 0: all of dp (and cp)
  Recompute recompute = Recompute::none;
  double recompute_share = 1;  // of the layers
  bool equal_chunks = true;    // of layers: frameworks that cut them so refuse any other count
  Schedule schedule = Schedule::one_f_one_b;

  // Copies of one expert's weights.
  std::int64_t expert_replicas() const { return tp * cp * dp / (ep * etp); }
  std::int64_t ranks() const { return tp * pp * dp * cp; }
  std::int64_t micro_batches() const { return global_batch / (dp * micro_batch); }
};

std::string_view name_of(Schedule);
std::string_view name_of(Recompute);
std::string_view name_of(ContextKind);
std::string_view name_of(Offload);

// Whether whole layers divide evenly over pp x vpp chunks, alone or with the embedding and the head
// taking the place of one layer each (Llama 3 405B: 126 layers in 128 places; arXiv 2407.21783,
// section 3.3.2).
bool layers_fit(std::int64_t layers, std::int64_t pp, std::int64_t vpp);

}  // namespace orrery

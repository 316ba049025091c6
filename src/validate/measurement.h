// One published run of a training job, as its source prints it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Outcome {
  ok,
  oom,
  does_not_fit,  // by the source's arithmetic, not by a run
};

/// Fields are named as the columns of the table; what a source does not print is empty.
struct Measurement {
  std::int64_t line = 0;  // of the table

  std::string id, source;
  std::string gpu, interconnect, framework;
  std::optional<std::int64_t> gpus, gpus_per_node;
  std::string task = "pretrain";  // or sft, lora, qlora

  std::string model;
  std::optional<double> params_b;  // billions; a label more often than a count
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, head_dim, ffn_hidden, vocab;
  std::string mlp;  // gelu, swiglu, sqrelu, ...
  std::optional<std::int64_t> experts, topk, moe_ffn_hidden;

  std::optional<std::int64_t> seq_len, global_batch_seqs, micro_batch;
  std::string precision;
  std::optional<std::int64_t> tp, pp, vpp, dp, cp, ep;
  std::optional<bool> sp;
  std::string zero_stage, recompute, other;  // words

  std::optional<double> step_time_s, tokens_per_s_per_gpu;
  std::optional<double> model_tflops_per_gpu, hw_tflops_per_gpu;
  std::optional<double> mfu_pct, hfu_pct, mfu_peak_tflops;
  std::string flops_convention;  // words
  std::optional<double> peak_mem_gib;
  Outcome outcome = Outcome::ok;
  std::string derived;  // columns that the table's author computed
};

/// The group of rows that an id belongs to: the id without its number.
std::string source_of(std::string_view id);

/// A table with the columns above, in any order; only id, gpu, gpus, model, seq_len,
/// global_batch_seqs and precision have to be there. InputError at "place:line" for a column that
/// is unknown or missing, an id that is empty or used twice, a cell that is no number, negative or
/// out of range.
std::vector<Measurement> measurements_from_csv(std::string_view text, const std::string& place);

/// Of a file.
std::vector<Measurement> load_measurements(const std::string& path);

}  // namespace orrery

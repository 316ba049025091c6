#include "validate/throughput.h"

#include <optional>

#include "model/count.h"
#include "validate/labels.h"

namespace orrery {
namespace {

// What a FLOP rate of a source counts.
enum class Counting { full, causal, full_without_groups, unusable };

Counting counting_of(const std::string& convention) {
  const auto says = [words = words_of(convention)](const std::string& part) {
    return words.find(" " + part) != std::string::npos;
  };
  if (says("nominal") || says("formula constants differ")) return Counting::unusable;
  if (says("gqa ignored")) return Counting::full_without_groups;
  if (says("causal")) return Counting::causal;
  // A convention that could not be verified is read as full: half of it would exceed what attention
  // kernels reach on the longest sequences.
  if (says("full") || says("unverified")) return Counting::full;
  return Counting::unusable;
}

double model_flop_per_token(const Architecture& model, std::int64_t seq_len, Counting counting) {
  Architecture counted = model;
  if (counting == Counting::full_without_groups) counted.kv_heads = counted.heads;
  const auto convention = counting == Counting::causal ? FlopConvention::causal_attention
                                                       : FlopConvention::full_attention;
  return flop_per_token(counted, seq_len, convention).value();
}

// FLOP/s of a printed utilisation.
std::optional<double> rate_of(std::optional<double> percent, std::optional<double> peak_tflops) {
  if (!percent || !peak_tflops) return std::nullopt;
  return *percent / 100 * *peak_tflops * 1e12;
}
std::optional<double> rate_of(std::optional<double> tflops) {
  if (!tflops) return std::nullopt;
  return *tflops * 1e12;
}

}  // namespace

double hardware_flop_per_token(const Architecture& model, std::int64_t seq_len, Recompute recompute,
                               double share) {
  const double full = model_flop_per_token(model, seq_len, Counting::full);
  const double logits = 6.0 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab);
  const double layers_forward = (full - logits) / 3;
  const double attention_forward = 4.0 * static_cast<double>(model.layers) *
                                   static_cast<double>(model.heads * model.head_dim) *
                                   static_cast<double>(seq_len);
  switch (recompute) {
    case Recompute::none:
      return full;
    case Recompute::selective:
      return full + share * attention_forward;
    case Recompute::operators:
      return full + share * (layers_forward - attention_forward) / 2;
    case Recompute::full:
      return full + share * layers_forward;
  }
  return full;
}

std::variant<double, Skip> measured_throughput(const Measurement& row, const Architecture& model,
                                               std::int64_t gpus, std::int64_t global_batch,
                                               Recompute recompute, double share) {
  const std::int64_t seq_len = *row.seq_len;
  if (row.tokens_per_s_per_gpu) return *row.tokens_per_s_per_gpu;
  if (row.step_time_s) {
    const double tokens = static_cast<double>(global_batch) * static_cast<double>(seq_len);
    return tokens / (*row.step_time_s * static_cast<double>(gpus));
  }
  const auto model_rate = row.model_tflops_per_gpu ? rate_of(row.model_tflops_per_gpu)
                                                   : rate_of(row.mfu_pct, row.mfu_peak_tflops);
  const auto hardware_rate = row.hw_tflops_per_gpu ? rate_of(row.hw_tflops_per_gpu)
                                                   : rate_of(row.hfu_pct, row.mfu_peak_tflops);
  if (!model_rate && !hardware_rate) return Skip{"no throughput printed"};
  const Counting counting = counting_of(row.flops_convention);
  if (counting == Counting::unusable) {
    return Skip{row.flops_convention.empty()
                    ? "only a FLOP rate is printed, and not what it counts"
                    : "only a FLOP rate is printed: " + row.flops_convention};
  }
  // As printed comes before turned back from a rounded percentage.
  const bool hardware = row.hw_tflops_per_gpu && !row.model_tflops_per_gpu;
  if (model_rate && !hardware) return *model_rate / model_flop_per_token(model, seq_len, counting);
  return *hardware_rate / hardware_flop_per_token(model, seq_len, recompute, share);
}

}  // namespace orrery

#include "physics/attention_shape.h"

#include <algorithm>
#include <cmath>

namespace orrery {

AttentionKernels attention_kernels(std::string_view library, GpuArchitecture architecture) {
  if (library == "tensorrt-llm") return AttentionKernels::fmha;
  // SGLang builds FlashAttention-3 for Ampere too.
  if (library == "sglang" || library == "flash-attention-3") return AttentionKernels::flash3;
  if (library.starts_with("vllm") && architecture >= GpuArchitecture::hopper) {
    return AttentionKernels::flash3;
  }
  return AttentionKernels::flash2;
}

AttentionExtent::AttentionExtent(const AttentionShape& shape)
    : batch(static_cast<double>(shape.batch) * shape.documents),
      heads(static_cast<double>(shape.heads)),
      kv_heads(static_cast<double>(shape.kv_heads)),
      head_dim(static_cast<double>(shape.head_dim)),
      value_dim(static_cast<double>(shape.value_dim > 0 ? shape.value_dim : shape.head_dim)),
      q_len(static_cast<double>(shape.q_len) / shape.documents),
      kv_len(static_cast<double>(shape.kv_len) / shape.documents),
      group(heads / kv_heads),
      element(element_size(shape.cache).value()),
      window(shape.window > 0 ? std::min(static_cast<double>(shape.window), kv_len) : kv_len),
      causal(shape.causal),
      sliding(window < kv_len) {
  if (!causal) {
    pairs = q_len * window;
    seen = kv_len;
    return;
  }
  // Token i of q_len sees min(before + i, window) keys.
  const double before = kv_len - q_len;
  const double growing = std::clamp(window - before, 0.0, q_len);
  pairs = growing * (before + 0.5 * (growing + 1)) + (q_len - growing) * window;
  seen = std::min(kv_len, window + q_len - 1);
}

std::string_view attention_op(const AttentionShape& shape) {
  if (shape.backward) return "attention-backward";
  if (!shape.causal) return "attention-encoder";
  return shape.q_len == 1 ? "attention-decode" : "attention-prefill";
}

std::string attention_variant(const AttentionShape& shape) {
  const bool narrow = element_size(shape.query) < Bytes(2);
  if (narrow) return "fp8";
  return element_size(shape.cache) < Bytes(2) ? "bf16 fp8-cache" : "bf16";
}

Flop attention_flop(const AttentionShape& shape) {
  const AttentionExtent x(shape);
  const double forward = 2 * x.batch * x.heads * x.pairs * (x.head_dim + x.value_dim);
  return Flop(shape.backward ? 2.5 * forward : forward);
}

Bytes attention_bytes(const AttentionShape& shape) {
  const AttentionExtent x(shape);
  constexpr double result = 2;  // in 16 bits, whatever the query
  const double widths = x.head_dim + x.value_dim;
  const double rows = x.batch * x.q_len * x.heads;
  const double queries =
      rows * (x.head_dim * element_size(shape.query).value() + x.value_dim * result);
  const double keys = x.batch * x.seen * x.kv_heads * widths * x.element;
  if (!shape.backward) return Bytes(queries + keys);
  return Bytes(2 * (queries + keys));
}

Precision matrix_precision(const AttentionShape& shape, const Device& device) {
  if (device.peak(shape.query) > FlopPerSecond()) return shape.query;
  return device.peak(Precision::bf16) > FlopPerSecond() ? Precision::bf16 : Precision::fp16;
}

double resident_share(double bytes, Bytes half) {
  return 1 / (1 + std::pow(bytes / half.value(), 4));
}

std::string attention_warning(const AttentionShape& shape, std::string_view library) {
  if (library != "tensorrt-llm" || attention_op(shape) != "attention-decode") return "";
  const double group = AttentionExtent(shape).group;
  // TensorRT-LLM 1.0 on A100 and 1.3 on H100 and L40S: XQA takes up to 32 heads that share keys.
  if (group > 32) {
    return "TensorRT-LLM has no fast decode kernel for more than 32 heads that share keys: it was "
           "timed at 1 - 110 GB/s of cache, up to 30 times slower than predicted";
  }
  if (group > 16) {
    return "TensorRT-LLM decodes with more than 16 heads that share keys at a third to a half of "
           "its usual rate";
  }
  return "";
}

}  // namespace orrery

// One call of fused attention: its shape, and whose kernels run it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "physics/device.h"
#include "units/quantity.h"

namespace orrery {

/// How a library's kernels divide the work.
enum class AttentionKernels {
  flash3,  ///< heads that share keys share a tile of rows; long keys are split among idle SMs
  flash2,  ///< a tile of rows a head, but in decoding, where heads that share keys become rows
  fmha,    ///< TensorRT-LLM: a tile of rows a head; XQA in decoding, MMHA where no keys are shared
};
/// Of a library as parameter sets name it: "vllm" is flash3 on Hopper and flash2 before it.
AttentionKernels attention_kernels(std::string_view library, GpuArchitecture architecture);

struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t head_dim = 128;
  std::int64_t value_dim = 0;  ///< 0: head_dim
  std::int64_t q_len = 1;      ///< new tokens of a sequence
  std::int64_t kv_len = 1;     ///< keys of a sequence, the new ones included
  std::int64_t window = 0;     ///< keys that a token sees at most, its own included; 0: all
  bool causal = true;          ///< the new tokens are the last
  Precision query = Precision::bf16;
  Precision cache = Precision::bf16;
  bool backward = false;
  bool writes_cache = false;  ///< the call brings the new keys and values into a paged cache
  double documents = 1;       ///< equal texts packed into a sequence, blind to each other
  /// Run again and again on the same operands: small ones stay in L2, as in a benchmark's loop.
  bool replayed = false;
  AttentionKernels kernels = AttentionKernels::flash3;
};

/// "attention-prefill", "attention-decode" (one new token), "attention-encoder" (not causal) or
/// "attention-backward": as parameter sets name what prices it.
std::string_view attention_op(const AttentionShape& shape);
/// "bf16" (fp16 too: tensor cores run both alike), "fp8", "bf16 fp8-cache".
std::string attention_variant(const AttentionShape& shape);

/// Matrix work on pairs of a token and a key that it sees; the backward pass is 2.5 times the
/// forward one (FlashAttention-2, arXiv 2307.08691).
Flop attention_flop(const AttentionShape& shape);
/// Queries and results, and keys and values once; the backward pass reads these with the gradient
/// of the result and writes three gradients.
Bytes attention_bytes(const AttentionShape& shape);

/// Of the products: the query's, or 16 bits where the GPU has no units for that.
Precision matrix_precision(const AttentionShape& shape, const Device& device);
/// Share of `bytes` that a benchmark's loop finds in L2.
double resident_share(double bytes, Bytes half);

/// What callers show: that the library has no fast kernel for this shape. Empty where it has.
std::string attention_warning(const AttentionShape& shape, std::string_view library);

/// The shape in numbers, packed texts as sequences of their own.
struct AttentionExtent {
  explicit AttentionExtent(const AttentionShape& shape);

  double batch, heads, kv_heads, head_dim, value_dim, q_len, kv_len;
  double group;          ///< heads that share keys
  double element;        ///< of a cached key or value, bytes
  double window;         ///< at most kv_len
  bool causal, sliding;  ///< sliding: the window is shorter than the keys
  double pairs;          ///< of a token and a key it sees, of one head of one sequence
  double seen;           ///< keys that any token of a sequence sees
};

}  // namespace orrery

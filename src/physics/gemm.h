// How long a matrix product takes on one GPU, by one library's kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

enum class GemmFormat {
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,        ///< one scale a tensor
  fp8_block,  ///< one scale for 1 x 128 of the activations and 128 x 128 of the weights
  int8,
  int8_smoothquant,  ///< int8 weights and activations, scaled by row and column
  int8_weight_only,  ///< 16-bit activations
  int4_weight_only,
};
std::string_view to_text(GemmFormat format);
std::optional<GemmFormat> gemm_format_named(std::string_view name);
/// Of the arithmetic.
Precision precision_of(GemmFormat format);

/// Which tiles a library lets itself choose from.
enum class TilePolicy {
  free,     ///< a heuristic over all of them, with split k: cuBLAS
  cutlass,  ///< a fixed dispatch by m, M-tiles in pairs, no split k: fp8 in vLLM and SGLang
  deepgemm  ///< 64, 128 or 256 rows, any multiple of 16 columns, no split k
};
TilePolicy policy_of(std::string_view library, GemmFormat format);

/// [m, k] x [k, n], `batch` times.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmFormat format = GemmFormat::bf16;
  TilePolicy policy = TilePolicy::free;
  /// Run again and again on the same operands: small ones stay in L2, as in a benchmark's loop.
  bool replayed = false;
  bool quantises = true;  ///< the call brings its 16-bit inputs to 8 bits first, where they are 8
  double result = 2;      ///< bytes moved for each element of the result; more where it is added to
  /// Of the weights' k values two of four are kept (2:4). Assumed, not measured: twice the
  /// arithmetic rate and half the weights with two bits of metadata for each value kept.
  bool sparse = false;
};

/// One set for an architecture, a format and a library. The first nine are of the kernels, the next
/// two of a benchmark's loop, the last two of the kernels that quantise.
struct GemmParameters {
  Seconds start;               ///< of the kernel, at least
  double efficiency = 1;       ///< issue limit of a large tile, of the boost clock's peak
  BytesPerSecond feed;         ///< operands into one SM
  BytesPerSecond shared_feed;  ///< operands out of L2 into all SMs
  double stream = 1;           ///< share of the memory bandwidth
  double overlap = 4;          ///< exponent of the norm that joins compute, feed and traffic
  BytesPerSecond epilogue;     ///< results out of one SM
  Seconds split;               ///< to add up the parts of a split k
  double quantisation = 1;     ///< of waves: 0 smooth, 1 whole waves
  Bytes resident_weights;      ///< of weights, half of which stay in L2 in a benchmark's loop
  Bytes resident_operands;     ///< likewise, of all operands
  Seconds quantise;            ///< of the kernels that quantise activations, where the call does
  BytesPerSecond quantise_rate;

  static std::span<const Parameter<GemmParameters>> parameters();
};

struct GemmTime : KernelTime {
  std::int64_t tile_m = 0, tile_n = 0, splits = 1;
  double ctas = 0, waves = 0;
};

/// For each tile (bm, bn) and split s of k, with T = ceil(m/bm) ceil(n/bn) s CTAs over S SMs: a CTA
/// takes w = (tc^q + tl^q)^(1/q) + 2 bm bn / E, tc = 2 bm bn k/s / R its arithmetic at the
/// issue limit and tl = (bm + bn) k/s e / B its operands; the product takes waves w joined with its
/// traffic by the same norm, and with s > 1 the sum of its parts. The best counts, at the clock
/// that the power limit leaves. Waves are smooth or whole by `quantisation`. Cost: 32 tiles at
/// most, whatever the shape.
GemmTime gemm_time(const GemmShape& shape, const GemmParameters& parameters, const Device& device);

}  // namespace orrery

// How long a matrix product takes on one GPU, by one library's kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

enum class GemmFormat { fp32, tf32, fp16, bf16, fp8, fp8_block, int8 };
std::string_view to_text(GemmFormat format);
Precision precision_of(GemmFormat format);

/// [m, k] x [k, n], `batch` times.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmFormat format = GemmFormat::bf16;
  /// Run again and again on the same operands: small ones stay in L2, as in a benchmark's loop.
  bool replayed = false;
  bool quantises = true;  ///< the call brings its 16-bit inputs to 8 bits first, where they are 8
  double result = 2;      ///< bytes moved for each element of the result; more where it is added to
};

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

GemmTime gemm_time(const GemmShape& shape, const GemmParameters& parameters, const Device& device);

}  // namespace orrery

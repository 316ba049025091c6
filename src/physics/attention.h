// How long fused attention takes over many new tokens: prefill, encoders, training.
#pragma once

#include <span>

#include "physics/attention_shape.h"
#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

/// A CTA takes a tile of query rows past the keys that they see:
///   pair = (2 head_dim + 2 value_dim) / (peak efficiency) + softmax / (16 a clock)
///   cta  = rows keys pair + start and end of the tile
/// and the kernel is as long as all tiles on all SMs, or as the longest tile.
struct AttentionParameters {
  Seconds start;          ///< of all kernels of the call, at least
  double efficiency = 1;  ///< issue limit of the matrix products, of the boost clock's peak
  double softmax = 1;     ///< exponentials' worth of work a pair that matrix work cannot hide
  double tile = 128;      ///< query rows of a CTA
  Seconds cta;            ///< of a tile, beside its keys
  BytesPerSecond rows;    ///< queries into and results out of one SM
  Seconds packed;         ///< of a tile whose rows are of several heads, more
  double tail = 0;        ///< tiles that the last SM works on alone
  double stream = 1;      ///< share of the memory bandwidth
  Bytes resident;         ///< of operands, half of which stay in L2 in a benchmark's loop
  BytesPerSecond write;   ///< of new keys and values into the cache, read and written
  Seconds token;          ///< of an SM, for each token that it writes

  static std::span<const Parameter<AttentionParameters>> parameters();
};

/// Forward or, where the shape says so, backward.
KernelTime attention_time(const AttentionShape& shape, const AttentionParameters& parameters,
                          const Device& device);

}  // namespace orrery

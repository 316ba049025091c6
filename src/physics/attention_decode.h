// How long fused attention takes over one new token of each sequence: reading the cache.
#pragma once

#include <span>

#include "physics/attention_shape.h"
#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

/// A CTA takes the heads that share keys past a part of them:
///   cta = steps of keys (their way into the SM, joined with the matrix work on padded rows) + ends
/// in waves over the SMs, joined with the traffic of the whole cache; parts are added up after.
struct AttentionDecodeParameters {
  Seconds start;            ///< of all kernels of the call, at least
  Seconds sequence;         ///< of the call, for each sequence
  Seconds head;             ///< of the call, for each head of keys of each sequence: cache write
  BytesPerSecond feed;      ///< of keys and values into one SM
  double efficiency = 1;    ///< issue limit of the matrix products, of the boost clock's peak
  Seconds cta;              ///< of a CTA, beside its keys
  double at_once = 1;       ///< CTAs of one SM
  double quantisation = 1;  ///< of waves: 0 smooth, 1 whole waves
  Seconds split;            ///< of adding up the parts of split keys
  double stream = 1;        ///< share of the memory bandwidth
  double overlap = 4;       ///< exponent of the norm
  Bytes resident;           ///< of cache, half of which stays in L2 in a benchmark's loop
  double alone = 1;         ///< time of a CTA whose head shares its keys with none, to others'
  Seconds regroup;          ///< of kernels that make rows of heads, where the library has them

  static std::span<const Parameter<AttentionDecodeParameters>> parameters();
};

/// For a few new tokens too, as in speculative decoding. Forward only.
KernelTime attention_decode_time(const AttentionShape& shape,
                                 const AttentionDecodeParameters& parameters, const Device& device);

}  // namespace orrery

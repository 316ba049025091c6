// How long multi-head latent attention takes on one GPU (DeepSeek-V2, arXiv 2405.04434): each token
// leaves one latent vector, shared by all heads, in the cache.
//
// What is timed is the attention call: queries and latents in, values out, the write of the cache
// with it; the projections around it are matrix products of their own.
#pragma once

#include <cstdint>
#include <span>

#include "catalog/gpu.h"
#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

/// Values a token and head, of DeepSeek-V2 and V3.
struct MlaWidths {
  double latent = 512;  ///< of the cache, shared by all heads; keys and values of decode
  double rope = 64;     ///< of the cache beside it, keys only
  double key = 128;     ///< of a head's keys and queries without rope, once expanded
  double value = 128;   ///< of a head's values, likewise

  double cached() const { return latent + rope; }
  /// Multiplied and added for each pair of a query and a key, one head.
  double absorbed_pair() const { return latent + rope + latent; }
  double expanded_pair() const { return key + rope + value; }
};

/// Causal; the last `queries` of `keys` tokens of each sequence.
struct MlaPrefillShape {
  std::int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  /// Whether it attends to latents, as decode does, or to keys and values of each head.
  bool absorbed = false;
  Precision precision = Precision::bf16;
  Bytes element = Bytes(2);  ///< of the cache
  MlaWidths widths = {};
};

/// A new token (or `queries` of them) of each sequence against a cache of `keys` latents.
struct MlaDecodeShape {
  std::int64_t batch = 0, heads = 0, keys = 0, queries = 1;
  Precision precision = Precision::bf16;
  Bytes element = Bytes(2);  ///< of the cache
  MlaWidths widths = {};
};

/// A tile of queries walks its keys on one SM; tiles fill the SMs in waves.
struct MlaPrefillParameters {
  Seconds start;             ///< of all kernels of the call, at least
  double efficiency = 1;     ///< of the boost clock's peak, on a long walk
  double exponential = 1;    ///< clocks of its unit for one exponential, of 16 a clock and SM
  double rows = 64;          ///< queries of a tile
  Seconds tile;              ///< of a tile, however few its keys
  double stream = 1;         ///< share of the memory bandwidth
  double passes = 1;         ///< over queries, keys, values and results
  double overlap = 4;        ///< exponent of the norm that joins tiles and traffic
  double quantisation = 1;   ///< of waves: 0 smooth, 1 whole waves
  double tail = 0;           ///< tiles that the last SMs are late, where there is a second wave
  double longest_first = 4;  ///< exponent of the norm of all work and the longest tile
  Seconds host;              ///< to issue the call, where no graph does; kernels run meanwhile

  static std::span<const Parameter<MlaPrefillParameters>> parameters();
};

/// A CTA serves 64 heads and a part of the keys.
struct MlaDecodeParameters {
  Seconds start;            ///< of all kernels of the call, at least
  double efficiency = 1;    ///< of the boost clock's peak
  BytesPerSecond feed;      ///< latents into one CTA, alone on its SM
  double resident = 1;      ///< CTAs that one SM runs as fast as one
  double parts = 1;         ///< CTAs that share a tile's walk without a split of the keys
  double chunk = 64;        ///< least keys of a part where keys are split
  Seconds tile;             ///< of a CTA, however few its keys
  double stream = 1;        ///< share of the memory bandwidth, copies of the cache taken along
  double passes = 1;        ///< over queries and results
  double overlap = 4;       ///< exponent of the norm that joins CTAs and traffic
  double quantisation = 1;  ///< of waves: 0 smooth, 1 whole waves
  Seconds join;             ///< of the parts of split keys
  Seconds host;             ///< as above

  static std::span<const Parameter<MlaDecodeParameters>> parameters();
};

KernelTime mla_prefill_time(const MlaPrefillShape& shape, const MlaPrefillParameters& parameters,
                            const Device& device);
KernelTime mla_decode_time(const MlaDecodeShape& shape, const MlaDecodeParameters& parameters,
                           const Device& device);

}  // namespace orrery

// How long the experts of one mixture-of-experts layer take on one GPU: rows gathered by expert,
// two grouped matrix products with the activation between them, rows put back.
//
// The exchange of tokens between ranks and the router's own product are not in it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/moe_loads.h"
#include "physics/parameters.h"

namespace orrery {

/// Weights and activations: 16-bit, 8-bit by tensor or by blocks, or 4-bit weights in blocks of 32
/// (mxfp4) or groups of 128 (int4) under 16-bit activations.
enum class MoeFormat { bf16, fp8, fp8_block, w4a16_mxfp4, int4_wo };
std::string_view to_text(MoeFormat format);
/// Of the arithmetic.
Precision precision_of(MoeFormat format);

/// How kernels choose their tiles.
enum class MoeTiles {
  best,    ///< tuned for the shape
  triton,  ///< vLLM's and SGLang's fused_moe without a tuned file: by tokens and experts alone
};

struct MoeShape {
  std::int64_t tokens = 0;             ///< that reach this rank's call, of all ranks it serves
  std::int64_t hidden = 0, inter = 0;  ///< `inter` of the whole expert
  std::int64_t topk = 1, experts = 1;  ///< `experts` of the whole layer
  std::int64_t tp = 1, ep = 1;         ///< `inter` and `experts` are divided by
  bool gated = true;                   ///< two matrices up, one down; else one up
  MoeFormat format = MoeFormat::bf16;
  MoeTiles tiles = MoeTiles::best;
  ExpertLoads loads;  ///< rows of this rank's experts
};

/// With the loads of the fullest rank; see fullest_rank for `skew`.
MoeShape with_loads(MoeShape shape, double skew);

struct MoeParameters {
  Seconds start;               ///< of all kernels of the call, at least
  double efficiency = 1;       ///< issue limit of a large tile, of the boost clock's peak
  BytesPerSecond feed;         ///< operands into one SM
  BytesPerSecond shared_feed;  ///< operands out of L2 into all SMs
  double stream = 1;           ///< share of the memory bandwidth
  double overlap = 3;          ///< exponent of the norm that joins compute, feed and traffic
  BytesPerSecond epilogue;     ///< results out of one SM
  double quantisation = 1;     ///< of waves: 0 smooth, 1 whole waves
  BytesPerSecond rows_rate;    ///< this rank's rows, gathered, activated, put back
  BytesPerSecond copies_rate;  ///< likewise all copies of the tokens, where kernels walk those
  Seconds expert;              ///< for each expert of this rank

  static std::span<const Parameter<MoeParameters>> parameters();
};

KernelTime moe_time(const MoeShape& shape, const MoeParameters& parameters, const Device& device);

}  // namespace orrery

// The tiles that a library cuts a matrix product into.
#pragma once

#include <span>

#include "physics/gemm.h"

namespace orrery {

/// Of the result, one a CTA.
struct Tile {
  double m = 0, n = 0;
  double split = 1;  ///< parts of k, each a CTA of its own
  double group = 1;  ///< CTAs along m that come together, whether there is work for all or not
};

/// Among which the library finds the best, or the one that its dispatch takes.
std::span<const Tile> tiles_for(const GemmShape& shape);

/// Whether a CTA writes one tile while it computes the next: kernels of Hopper and later, by
/// warps of their own, but for DeepGEMM's.
bool hides_epilogue(TilePolicy policy, GpuArchitecture architecture);

/// Whether tiles are taken along the shorter side of the result all the way: CUTLASS's scheduler.
/// Others take them in blocks, which read operands from memory hardly more than once.
bool walks_shorter_side(TilePolicy policy);

}  // namespace orrery

#include "physics/gemm_tiles.h"

#include <array>
#include <vector>

namespace orrery {
namespace {

// The shapes that vendor libraries choose from, and how many parts k may be cut into.
std::vector<Tile> free_tiles() {
  constexpr std::array<Tile, 9> shapes = {{{64, 16},
                                           {64, 32},
                                           {64, 64},
                                           {64, 128},
                                           {128, 64},
                                           {128, 128},
                                           {64, 256},
                                           {128, 256},
                                           {256, 128}}};
  std::vector<Tile> tiles;
  for (const Tile& shape : shapes) {
    for (const double split : {1, 2, 3, 4, 6, 8, 12, 16}) {
      tiles.push_back({shape.m, shape.n, split});
    }
  }
  return tiles;
}

// DeepGEMM takes any multiple of 16 columns. Which one it takes by its rule (fewest waves, then the
// fullest last one) predicts no better than the best of them by this model.
std::vector<Tile> deepgemm_tiles() {
  std::vector<Tile> tiles = {{256, 128}};
  for (const double m : {64, 128}) {
    for (double n = 16; n <= 256; n += 16) tiles.push_back({m, n});
  }
  return tiles;
}

// vLLM's dispatch of fp8 on Hopper (vllm-project/vllm, scaled_mm_sm90_fp8_dispatch.cuh). Few rows
// are taken as columns: their tile is 16 of them by 64 of the weights.
std::span<const Tile> vllm_tile(const GemmShape& shape) {
  static constexpr std::array<Tile, 7> tiles = {{{16, 64, 1, 2},
                                                 {16, 64},
                                                 {16, 64, 1, 4},
                                                 {64, 64},
                                                 {64, 128, 1, 2},
                                                 {128, 128, 1, 2},
                                                 {256, 128, 1, 2}}};
  const auto one = [](std::size_t i) { return std::span<const Tile>(tiles).subspan(i, 1); };
  const bool narrow = shape.n <= 1280;
  if (shape.m <= 16) return one(narrow ? 0 : 1);
  if (shape.m <= 64) return one(narrow ? 2 : 3);
  if (shape.m <= 128) return one(4);
  return one(shape.m >= 8192 && shape.k >= 6144 ? 6 : 5);
}

// SGLang's (sgl-project/sglang, sgl-kernel, fp8_gemm_kernel.cu and its later form after vLLM's).
std::span<const Tile> sglang_tile(const GemmShape& shape) {
  static constexpr std::array<Tile, 7> tiles = {{{16, 64, 1, 2},
                                                 {16, 64},
                                                 {16, 64, 1, 4},
                                                 {32, 64},
                                                 {64, 64},
                                                 {64, 128, 1, 2},
                                                 {128, 128, 1, 2}}};
  const auto one = [](std::size_t i) { return std::span<const Tile>(tiles).subspan(i, 1); };
  const bool narrow = shape.n <= 1280;
  if (shape.m <= 16) return one(narrow ? 0 : 1);
  if (shape.m <= 64) return one(narrow ? 2 : shape.m <= 32 ? 3 : 4);
  if (shape.m <= 128) return one(shape.n <= 4096 ? 4 : 5);
  return one(6);
}

}  // namespace

std::span<const Tile> tiles_for(const GemmShape& shape) {
  static const std::vector<Tile> free = free_tiles(), deepgemm = deepgemm_tiles();
  switch (shape.policy) {
    case TilePolicy::free:
      return free;
    case TilePolicy::deepgemm:
      return deepgemm;
    case TilePolicy::vllm:
      return vllm_tile(shape);
    case TilePolicy::sglang:
      return sglang_tile(shape);
  }
  return free;
}

bool hides_epilogue(TilePolicy policy, GpuArchitecture architecture) {
  return architecture >= GpuArchitecture::hopper && policy != TilePolicy::deepgemm;
}

bool walks_shorter_side(TilePolicy policy) {
  return policy == TilePolicy::vllm || policy == TilePolicy::sglang;
}

}  // namespace orrery

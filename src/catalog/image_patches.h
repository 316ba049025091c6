// How an image becomes tokens: square patches, each mapped to the stack's width.
#pragma once

#include <cstdint>

#include "catalog/architecture.h"
#include "catalog/config_values.h"

namespace orrery {

struct ImageSizes {
  std::int64_t image, patch;  // sides in pixels
  std::int64_t channels = 3;
};

struct ImagePatches {
  std::int64_t inputs;  // numbers in a patch
  std::int64_t rows, columns;
  std::int64_t side;  // of a patch
  std::int64_t count() const { return rows * columns; }
};

/// From image_size and patch_size (a side, or height and width) and num_channels; what does not
/// fill a patch is cut off. InputError if no patch fits.
ImagePatches read_patches(ConfigValues&, const ImageSizes& fallback);

/// A tower of `stack` over the patches and `class_tokens` tokens more, which do not reach the main
/// stack.
Tower patch_tower(Architecture stack, const ImagePatches& patches, std::int64_t class_tokens = 0);

/// The tower of an image encoder that stands alone: its patch map is counted under `extra`.
Architecture stack_alone(const Tower& tower);

}  // namespace orrery

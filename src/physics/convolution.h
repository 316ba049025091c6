// How long a two-dimensional convolution takes, as the matrix product that an implicit GEMM makes
// of it (Chetlur et al. 2014, arXiv 1410.0759). Derived: no published timing of ours checks it.
#pragma once

#include <cstdint>

#include "physics/gemm.h"

namespace orrery {

/// Images [batch, height, width, channels], filters [filters, filter_height, filter_width,
/// channels].
struct ConvolutionShape {
  std::int64_t batch = 1, height = 0, width = 0, channels = 0;
  std::int64_t filters = 0, filter_height = 1, filter_width = 1;
  std::int64_t stride = 1, padding = 0;
  GemmFormat format = GemmFormat::bf16;

  /// 0 where the filter is larger than the padded image.
  std::int64_t out_height() const;
  std::int64_t out_width() const;
};

/// One row for each pixel of the result, one column for each filter, summed over what a filter
/// covers.
GemmShape implicit_gemm(const ConvolutionShape& shape);

/// By the parameters of matrix products. The pixels that neighbouring filters share are read from
/// memory once: `bytes` are those of the images, not of the matrix that is never written. EXPECTs a
/// result with pixels.
GemmTime convolution_time(const ConvolutionShape& shape, const GemmParameters& parameters,
                          const Device& device);

}  // namespace orrery

#include "physics/convolution.h"

#include <algorithm>

#include "core/error.h"

namespace orrery {
namespace {

std::int64_t positions(std::int64_t size, std::int64_t filter, const ConvolutionShape& shape) {
  const std::int64_t room = size + 2 * shape.padding - filter;
  return room < 0 ? 0 : room / shape.stride + 1;
}

}  // namespace

std::int64_t ConvolutionShape::out_height() const {
  return positions(height, filter_height, *this);
}
std::int64_t ConvolutionShape::out_width() const { return positions(width, filter_width, *this); }

GemmShape implicit_gemm(const ConvolutionShape& shape) {
  GemmShape product;
  product.m = shape.batch * shape.out_height() * shape.out_width();
  product.n = shape.filters;
  product.k = shape.channels * shape.filter_height * shape.filter_width;
  product.format = shape.format;
  return product;
}

GemmTime convolution_time(const ConvolutionShape& shape, const GemmParameters& parameters,
                          const Device& device) {
  const GemmShape product = implicit_gemm(shape);
  EXPECT(product.m > 0);
  const Bytes element = element_size(precision_of(shape.format));
  const auto bytes_of = [&](std::int64_t a, std::int64_t b, std::int64_t c = 1,
                            std::int64_t d = 1) {
    return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) *
           static_cast<double>(d) * element;
  };
  const Bytes images = bytes_of(shape.batch, shape.height, shape.width, shape.channels);
  const Bytes weights = bytes_of(product.n, product.k);
  const Bytes results =
      Bytes(product.result * static_cast<double>(product.m) * static_cast<double>(product.n));
  const Bytes unfolded = bytes_of(product.m, product.k);
  // Strides skip pixels, so what is read may also be less than the images.
  const Bytes read = std::min(images, unfolded);
  // The product's model moves the unfolded images. A memory that much faster, and cheaper a byte,
  // moves them in the time and for the energy that the images themselves take.
  const double excess = (unfolded + weights + results) / (read + weights + results);
  Device folded = device;
  folded.memory *= excess;
  folded.power.memory /= excess;
  GemmTime time = gemm_time(product, parameters, folded);
  time.bytes /= excess;
  return time;
}

}  // namespace orrery

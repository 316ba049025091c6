#include "physics/convolution.h"

#include <gmock/gmock.h>

#include <cmath>

namespace orrery {
namespace {

GemmParameters usual() {
  std::vector<double> starts;
  for (const auto& parameter : GemmParameters::parameters()) starts.push_back(parameter.info.start);
  return parameters_from<GemmParameters>(starts);
}

Device plain() {
  Device device;
  device.sms = 100;
  device.boost = Hertz(1.5e9);
  device.memory = BytesPerSecond(2e12);
  device.l2 = Bytes(40e6);
  device.per_clock.fill(4096);
  device.power.boost = device.power.reference = device.boost;
  device.power.lowest = Hertz(0.3e9);
  device.limit = Watts(1000);
  return device;
}

// ResNet-50's first layer: 7 x 7 filters of 3 channels at stride 2 make 112 x 112 of 224 x 224.
TEST(Convolution, IsAMatrixProduct) {
  const ConvolutionShape stem = {.batch = 32,
                                 .height = 224,
                                 .width = 224,
                                 .channels = 3,
                                 .filters = 64,
                                 .filter_height = 7,
                                 .filter_width = 7,
                                 .stride = 2,
                                 .padding = 3};
  EXPECT_EQ(stem.out_height(), 112);
  const GemmShape product = implicit_gemm(stem);
  EXPECT_EQ(product.m, 32 * 112 * 112);
  EXPECT_EQ(product.n, 64);
  EXPECT_EQ(product.k, 147);
  const GemmTime time = convolution_time(stem, usual(), plain());
  EXPECT_DOUBLE_EQ(time.flop.value(), 2.0 * 32 * 112 * 112 * 64 * 147);
}

TEST(Convolution, OfOnePixelFiltersIsTheProductItself) {
  const ConvolutionShape shape = {
      .batch = 16, .height = 56, .width = 56, .channels = 256, .filters = 64};
  const GemmTime product = gemm_time(implicit_gemm(shape), usual(), plain());
  const GemmTime time = convolution_time(shape, usual(), plain());
  EXPECT_DOUBLE_EQ(time.time.value(), product.time.value());
  EXPECT_DOUBLE_EQ(time.bytes.value(), product.bytes.value());
}

// Overlapping filters read each pixel of the images once.
TEST(Convolution, MovesImagesAndNotTheUnfoldedMatrix) {
  const ConvolutionShape shape = {.batch = 64,
                                  .height = 56,
                                  .width = 56,
                                  .channels = 64,
                                  .filters = 8,
                                  .filter_height = 3,
                                  .filter_width = 3,
                                  .padding = 1};
  const GemmTime time = convolution_time(shape, usual(), plain());
  const double pixels = 64.0 * 56 * 56;
  EXPECT_NEAR(time.bytes.value(), 2 * (pixels * 64 + pixels * 8 + 8 * 64 * 9), 1);
  EXPECT_LT(time.time, gemm_time(implicit_gemm(shape), usual(), plain()).time);
}

TEST(Convolution, OfAFilterLargerThanTheImageHasNoResult) {
  const ConvolutionShape shape = {
      .height = 4, .width = 4, .channels = 1, .filters = 1, .filter_height = 5, .filter_width = 5};
  EXPECT_EQ(shape.out_height(), 0);
}

}  // namespace
}  // namespace orrery

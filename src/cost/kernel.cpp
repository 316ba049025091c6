#include "cost/kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace orrery {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::int64_t divided(std::int64_t rows, std::int64_t groups) {
  return (rows + groups - 1) / groups;
}

GemmFormat gemm_format(Precision precision) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
      return GemmFormat::fp32;
    case Precision::tf32:
      return GemmFormat::tf32;
    case Precision::fp16:
      return GemmFormat::fp16;
    case Precision::bf16:
      return GemmFormat::bf16;
    case Precision::fp8:
    case Precision::fp4:
      return GemmFormat::fp8;
    case Precision::int8:
      return GemmFormat::int8;
  }
  return GemmFormat::bf16;
}

}  // namespace

KernelModel::KernelModel(const JobKernels& kernels, const Framework& framework,
                         AttentionKernel attention)
    : kernels_(kernels),
      framework_(framework),
      attention_rates_(attention == AttentionKernel::early_flash ? kernels.rates.early_flash
                                                                 : kernels.rates.flash),
      stream_(kernels.device.memory * kernels.rates.stream.value()) {}

const MatrixRates& KernelModel::matrix_rates(Precision precision) const {
  const bool eight = precision == Precision::fp8 || precision == Precision::int8;
  return eight ? kernels_.rates.eight_bit : kernels_.rates.sixteen_bit;
}

double KernelModel::kept_speed(Precision precision) const {
  return matrix_rates(precision).sustained.value() * framework_.quality.value();
}

FlopPerSecond KernelModel::sustained(Precision precision) const {
  constexpr std::int64_t large = 16384;
  const GemmTime product =
      gemm_time({.m = large, .n = large, .k = large, .format = gemm_format(precision)},
                kernels_.gemm(precision), kernels_.device);
  return product.flop / product.time * kept_speed(precision);
}

Seconds KernelModel::operator()(const Kernel& kernel) const {
  switch (kernel.kind) {
    case OpKind::matmul:
      return matmul(kernel, std::get<Matmul>(kernel.shape));
    case OpKind::attention:
      return attention(kernel, std::get<Attention>(kernel.shape));
    case OpKind::attention_scores:
    case OpKind::attention_values:
      return batched(kernel);
    case OpKind::matrix_work:
      return at_rate(kernel, sustained(kernel.precision).value());
    case OpKind::vector_work:
      return at_rate(kernel, kernels_.gpu.required_peak(Precision::fp32).value());
    default:
      return traffic(kernel);
  }
}

Seconds KernelModel::matmul(const Kernel& kernel, const Matmul& shape) const {
  // Of one group; the tokens of a weight gradient lie along k.
  const bool accumulates = kernel.pass == Pass::weight_gradient;
  GemmShape product = {.m = shape.m, .n = shape.n, .k = shape.k, .batch = shape.groups};
  (accumulates ? product.k : product.m) = divided(accumulates ? shape.k : shape.m, shape.groups);
  product.format = gemm_format(kernel.precision);
  product.quantises = false;  // a kernel of its own
  if (product.m <= 0 || product.n <= 0 || product.k <= 0) return Seconds(0);
  // Adding a weight gradient to the sum so far reads and writes that sum: in the product's own
  // epilogue, or in a kernel after it.
  const double results = as_double(product.batch) * as_double(product.m) * as_double(product.n);
  const double sum = framework_.per_parameter.accumulate.value() * results;
  const bool fused = accumulates && framework_.fuses_accumulation;
  if (fused) product.result = framework_.per_parameter.accumulate.value();
  const GemmTime time = gemm_time(product, kernels_.gemm(kernel.precision), kernels_.device);

  const bool aligned = shape.m % 64 == 0 && shape.n % 64 == 0 && shape.k % 64 == 0;
  const double kept = kept_speed(kernel.precision) *
                      (aligned ? 1 : matrix_rates(kernel.precision).misaligned.value()) *
                      experts_share(kernel.precision, shape.groups);
  const double apart = dequantised(kernel) + (accumulates && !fused ? sum : 0);
  return time.start + (time.time - time.start) / kept + Seconds(apart / stream_.value());
}

double KernelModel::experts_share(Precision precision, std::int64_t groups) const {
  if (groups == 1) return 1;
  const bool eight = element_size(precision) < Bytes(2);
  return (eight ? framework_.experts.eight_bit : framework_.experts.sixteen_bit).value();
}

// Bytes moved to bring a matrix from 4 bits, by a kernel of its own.
double KernelModel::dequantised(const Kernel& kernel) const {
  return kernel.dequantised * framework_.dequantise.value();
}

Seconds KernelModel::attention(const Kernel& kernel, const Attention& shape) const {
  const double length =
      as_double(shape.window > 0 ? std::min(shape.window, shape.keys) : shape.keys);
  const double width = std::min(1.0, as_double(shape.head_dim) / 128);
  double rate = kernels_.gpu.required_peak(kernel.precision).value() *
                attention_rates_.sustained.value() * length /
                (length + attention_rates_.half_length.value()) *
                std::pow(width, attention_rates_.head_dim_exponent.value());
  if (kernel.pass != Pass::forward) rate *= attention_rates_.backward.value();
  return at_rate(kernel, rate);
}

Seconds KernelModel::batched(const Kernel& kernel) const {
  const Attention& shape = std::get<Attention>(kernel.shape);
  double rate = sustained(kernel.precision).value() * kernels_.rates.unfused.value();
  if (shape.head_dim % 8 != 0) rate *= kernels_.rates.unfused_misaligned.value();
  return at_rate(kernel, rate);
}

Seconds KernelModel::at_rate(const Kernel& kernel, double rate) const {
  const double memory = (kernel.read + kernel.written).value() / stream_.value();
  return Seconds(kernels_.rates.start.value().value() +
                 std::max(kernel.flop.value() / rate, memory));
}

Seconds KernelModel::traffic(const Kernel& kernel) const {
  const double experts = kernel.of_experts ? framework_.experts.traffic.value() : 1;
  const double bytes =
      (kernel.read + kernel.written).value() * framework_.traffic.value() * experts;
  return kernels_.rates.start.value() + Seconds(bytes / stream_.value());
}

}  // namespace orrery

#include "cost/kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "cost/power.h"

namespace orrery {
namespace {

struct Tile {
  double m, n;
};
// The shapes that vendor libraries choose from, large to small.
constexpr std::array kTiles = {Tile{128, 256}, Tile{256, 128}, Tile{128, 128}, Tile{64, 256},
                               Tile{128, 64},  Tile{64, 128},  Tile{64, 64}};

double norm(double a, double b, double q) {
  const double high = std::max(a, b);
  if (high <= 0) return 0;
  return high * std::pow(std::pow(a / high, q) + std::pow(b / high, q), 1 / q);
}

double as_double(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

KernelModel::KernelModel(const Gpu& gpu, const KernelRates& rates, const Framework& framework,
                         AttentionKernel attention, Watts power_limit)
    : gpu_(gpu),
      rates_(rates),
      framework_(framework),
      attention_rates_(attention == AttentionKernel::early_flash ? rates.early_flash : rates.flash),
      power_limit_(power_limit),
      stream_(gpu.memory.bandwidth.value() * rates.stream.value()) {}

const MatrixRates& KernelModel::matrix_rates(Precision precision) const {
  const bool eight = precision == Precision::fp8 || precision == Precision::int8;
  return eight ? rates_.eight_bit : rates_.sixteen_bit;
}

FlopPerSecond KernelModel::sustained(Precision precision) const {
  const MatrixRates& rates = matrix_rates(precision);
  const FlopPerSecond free =
      gpu_.required_peak(precision) * rates.sustained.value() * framework_.quality.value();
  const PowerModel power = power_model_of(gpu_);
  // What it would draw at full clock, or as much as the limit that the rate was reached under.
  const Watts needed =
      std::min(free * power.matrix(precision) * power.full_clock, power.rated - power.floor);
  const Watts allowed = std::max(power_limit_ - power.floor, Watts(1));
  if (needed <= allowed) return free;
  return free * std::pow(allowed / needed, 1 / rates_.cap_exponent.value());
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
      return at_rate(kernel, gpu_.required_peak(Precision::fp32).value());
    default:
      return traffic(kernel);
  }
}

Seconds KernelModel::matmul(const Kernel& kernel, const Matmul& shape) const {
  const MatrixRates& rates = matrix_rates(kernel.precision);
  const double groups = as_double(shape.groups);
  // Of one group; the tokens of a weight gradient lie along k.
  const bool accumulates = kernel.pass == Pass::weight_gradient;
  const double m = as_double(shape.m) / (accumulates ? 1 : groups), n = as_double(shape.n);
  const double k = as_double(shape.k) / (accumulates ? groups : 1);
  if (m <= 0 || n <= 0 || k <= 0) return Seconds(0);
  const bool aligned = shape.m % 64 == 0 && shape.n % 64 == 0 && shape.k % 64 == 0;
  const double rate = sustained(kernel.precision).value() *
                      (aligned ? 1 : rates.misaligned.value()) *
                      experts_share(kernel.precision, shape.groups);
  const double sms = as_double(gpu_.sms.value());
  const double q = rates.overlap.value();
  const double element = element_size(kernel.precision).value();
  // Adding a weight gradient to the sum so far reads and writes that sum: in the product's own
  // epilogue, or in a kernel after it.
  const double sum = framework_.per_parameter.accumulate.value() * groups * m * n;
  const bool fused = accumulates && framework_.fuses_accumulation;
  const double result = fused ? sum : 2 * groups * m * n;
  const double memory = (groups * (n * k + m * k) * element + result) / stream_.value();

  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double ctas = groups * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double compute = 2 * tile.m * tile.n * k * sms / rate;
    const double feed = (tile.m + tile.n) * k * element / rates.feed.value().value();
    const double cta =
        norm(compute, feed, q) + 2 * tile.m * tile.n / rates.epilogue.value().value();
    const double filled = std::max(ctas / sms, 1.0);
    const double waves = filled + rates.quantisation.value() * (std::ceil(filled) - filled);
    best = std::min(best, norm(waves * cta, memory, q));
  }
  const double apart = dequantised(kernel) + (accumulates && !fused ? sum : 0);
  return Seconds(rates_.start.value().value() + best + apart / stream_.value());
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
  double rate = gpu_.required_peak(kernel.precision).value() * attention_rates_.sustained.value() *
                length / (length + attention_rates_.half_length.value()) *
                std::pow(width, attention_rates_.head_dim_exponent.value());
  if (kernel.pass != Pass::forward) rate *= attention_rates_.backward.value();
  return at_rate(kernel, rate);
}

Seconds KernelModel::batched(const Kernel& kernel) const {
  const Attention& shape = std::get<Attention>(kernel.shape);
  double rate = sustained(kernel.precision).value() * rates_.unfused.value();
  if (shape.head_dim % 8 != 0) rate *= rates_.unfused_misaligned.value();
  return at_rate(kernel, rate);
}

Seconds KernelModel::at_rate(const Kernel& kernel, double rate) const {
  const double memory = (kernel.read + kernel.written).value() / stream_.value();
  return Seconds(rates_.start.value().value() + std::max(kernel.flop.value() / rate, memory));
}

Seconds KernelModel::traffic(const Kernel& kernel) const {
  const double experts = kernel.of_experts ? framework_.experts.traffic.value() : 1;
  const double bytes =
      (kernel.read + kernel.written).value() * framework_.traffic.value() * experts;
  return rates_.start.value() + Seconds(bytes / stream_.value());
}

}  // namespace orrery

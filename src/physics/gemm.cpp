#include "physics/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

using P = GemmParameters;
constexpr std::array<Parameter<P>, 13> parameter_table = {{
    {{"start", 0.5e-6, 20e-6, 2.6e-6, "start of the kernel"}, &P::start},
    {{"efficiency", 0.5, 1.2, 0.90, "issue limit of a large tile"}, &P::efficiency},
    {{"feed", 10e9, 600e9, 128e9, "operands into one SM"}, &P::feed},
    {{"shared_feed", 1e12, 60e12, 15e12, "operands out of L2"}, &P::shared_feed},
    {{"stream", 0.4, 1.0, 0.825, "share of the memory bandwidth"}, &P::stream},
    {{"overlap", 1.2, 10, 4.1, "exponent of the norm"}, &P::overlap},
    {{"epilogue", 2e9, 300e9, 30e9, "results out of one SM"}, &P::epilogue},
    {{"split", 0.1e-6, 20e-6, 2.6e-6, "adding the parts of a split k"}, &P::split},
    {{"quantisation", 0.001, 1.0, 0.04, "of waves"}, &P::quantisation},
    {{"resident_weights", 0.05e6, 100e6, 4.6e6, "weights that stay in L2"}, &P::resident_weights},
    {{"resident_operands", 0.05e6, 200e6, 24e6, "operands likewise"}, &P::resident_operands},
    {{"quantise", 0.05e-6, 20e-6, 0.1e-6, "quantise kernels"}, &P::quantise},
    {{"quantise_rate", 100e9, 20e12, 1.3e12, "likewise, a byte"}, &P::quantise_rate},
}};

struct Tile {
  double m, n;
};
constexpr std::array tiles = {Tile{64, 16},  Tile{64, 32},   Tile{64, 64},
                              Tile{64, 128}, Tile{128, 64},  Tile{128, 128},
                              Tile{64, 256}, Tile{128, 256}, Tile{256, 128}};
constexpr std::array splits = {1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0};

// Share of `bytes` that a benchmark's loop finds in L2.
double resident(double bytes, Bytes half, double sharpness = 4) {
  return 1 / (1 + std::pow(bytes / half.value(), sharpness));
}

}  // namespace

std::span<const Parameter<P>> GemmParameters::parameters() { return parameter_table; }

std::string_view to_text(GemmFormat format) {
  constexpr std::array names = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp8_block", "int8"};
  return names[static_cast<std::size_t>(format)];
}

Precision precision_of(GemmFormat format) {
  constexpr std::array precisions = {Precision::fp32, Precision::tf32, Precision::fp16,
                                     Precision::bf16, Precision::fp8,  Precision::fp8,
                                     Precision::int8};
  return precisions[static_cast<std::size_t>(format)];
}

GemmTime gemm_time(const GemmShape& shape, const GemmParameters& p, const Device& device) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  const Precision precision = precision_of(shape.format);
  const double element = element_size(precision).value();
  const double sms = device.sms;
  const double rate = device.peak(precision).value() / sms * p.efficiency;
  const double weights = batch * n * k * element, inputs = batch * m * k * element;
  const double outputs = shape.result * batch * m * n;
  double traffic = weights + inputs + outputs;
  if (shape.replayed) {
    traffic = weights * (1 - resident(weights, p.resident_weights)) +
              (inputs + outputs) * (1 - resident(weights + inputs + outputs, p.resident_operands));
  }
  const double memory = traffic / (p.stream * device.memory.value());

  GemmTime best;
  double least = std::numeric_limits<double>::infinity();
  double waves_compute = 0, rest = 0;
  for (const Tile& tile : tiles) {
    for (const double s : splits) {
      const double ctas = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n) * s;
      if (s > 1 && (ctas > 2 * sms || k / s < 128)) break;
      const double depth = std::ceil(k / s / 64) * 64;
      const double compute = 2 * tile.m * tile.n * depth / rate;
      const double feed = (tile.m + tile.n) * depth * element /
                          std::min(p.feed.value(), p.shared_feed.value() / std::min(ctas, sms));
      const double filled = std::max(ctas / sms, 1.0);
      const double waves = filled + p.quantisation * (std::ceil(filled) - filled);
      const double tail = 2 * tile.m * tile.n / p.epilogue.value();
      const double joined =
          s > 1 ? p.split.value() + 8 * batch * m * n * s / p.shared_feed.value() : 0;
      if (std::max(waves * (std::max(compute, feed) + tail), memory) + joined >= least) continue;
      const double cta = norm(compute, feed, p.overlap) + tail;
      const double time = norm(waves * cta, memory, p.overlap) + joined;
      if (time >= least) continue;
      least = time;
      waves_compute = waves * cta;
      rest = joined;
      best.tile_m = static_cast<std::int64_t>(tile.m);
      best.tile_n = static_cast<std::int64_t>(tile.n);
      best.splits = static_cast<std::int64_t>(s);
      best.ctas = ctas;
      best.waves = waves;
      best.compute = Seconds(waves * compute);
      best.feed = Seconds(waves * feed);
    }
  }
  const bool eight_bit = shape.quantises && precision == Precision::fp8;
  const double quantise =
      eight_bit ? p.quantise.value() + 3 * batch * m * k / p.quantise_rate.value() : 0;
  best.flop = Flop(2 * batch * m * n * k);
  best.bytes = Bytes(traffic);
  best.start = p.start + Seconds(quantise);
  best.memory = Seconds(memory);
  const Demand demand = {
      .fixed = best.start + Seconds(rest),
      .compute = Seconds(waves_compute),
      .memory = best.memory,
      .overlap = p.overlap,
      .switching = best.flop * device.power.matrix[static_cast<std::size_t>(precision)],
      .traffic = best.bytes * device.power.memory};
  const Operating operating = operate(demand, device.power, device.limit);
  best.time = operating.time;
  best.clock = operating.clock;
  best.power = operating.power;
  best.bound = operating.limited              ? Bound::power
               : best.start > 0.5 * best.time ? Bound::latency
               : memory > waves_compute       ? Bound::memory
               : best.feed > best.compute     ? Bound::feed
                                              : Bound::compute;
  return best;
}

}  // namespace orrery

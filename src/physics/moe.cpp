#include "physics/moe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace orrery {
namespace {

using P = MoeParameters;
constexpr std::array<Parameter<P>, 11> parameter_table = {{
    {{"start", 2e-6, 300e-6, 27e-6, "start of the kernels"}, &P::start},
    {{"efficiency", 0.05, 1.0, 0.7, "issue limit of a large tile"}, &P::efficiency},
    {{"feed", 5e9, 600e9, 150e9, "operands into one SM"}, &P::feed},
    {{"shared_feed", 0.5e12, 60e12, 12e12, "operands out of L2"}, &P::shared_feed},
    {{"stream", 0.1, 1.0, 0.9, "share of the memory bandwidth"}, &P::stream},
    {{"overlap", 1.2, 8, 2.2, "exponent of the norm"}, &P::overlap},
    {{"epilogue", 1e9, 500e9, 30e9, "results out of one SM"}, &P::epilogue},
    {{"quantisation", 0.001, 1.0, 0.3, "of waves"}, &P::quantisation},
    {{"rows_rate", 0.1e12, 50e12, 4e12, "rows moved"}, &P::rows_rate},
    {{"copies_rate", 0.1e12, 10000e12, 10e12, "copies moved"}, &P::copies_rate},
    {{"expert", 0.1e-9, 2e-6, 20e-9, "of an expert"}, &P::expert},
}};

struct Tile {
  double m, n;
};
constexpr std::array tuned_tiles = {Tile{16, 64},   Tile{16, 128}, Tile{32, 64},  Tile{32, 128},
                                    Tile{64, 64},   Tile{64, 128}, Tile{64, 256}, Tile{128, 64},
                                    Tile{128, 128}, Tile{128, 256}};
// get_default_config of vLLM's and SGLang's fused_moe: narrow while tokens do not outnumber the
// rank's experts. Blocks of scales are 128 wide, and so are the tiles then.
constexpr Tile narrow_triton = {16, 32}, wide_triton = {64, 64};
constexpr double block_columns = 128;

double weight_bytes(MoeFormat format) {
  switch (format) {
    case MoeFormat::bf16:
      return 2;
    case MoeFormat::fp8:
    case MoeFormat::fp8_block:
      return 1;
    case MoeFormat::w4a16_mxfp4:
      return 0.5 + 1.0 / 32;  // one-byte scale a block
    case MoeFormat::int4_wo:
      return 0.5 + 2.0 / 128;  // two-byte scale a group
  }
  return 2;
}

double activation_bytes(MoeFormat format) {
  return format == MoeFormat::fp8 || format == MoeFormat::fp8_block ? 1 : 2;
}

struct Grouped {
  double compute = 0, feed = 0, memory = 0;  // seconds
  double traffic = 0;                        // bytes
};

// [rows of each expert, depth] x [depth, columns], for all experts of the rank in one kernel.
Grouped product(const MoeShape& shape, double columns, double depth, const P& p,
                const Device& device) {
  const double weight = weight_bytes(shape.format), activation = activation_bytes(shape.format);
  const double rate = device.peak(precision_of(shape.format)).value() / device.sms * p.efficiency;
  const double rows = rows_of(shape.loads), active = experts_of(shape.loads);
  Grouped best;
  best.traffic = active * columns * depth * weight + rows * (depth * activation + columns * 2);
  best.memory = best.traffic / (p.stream * device.memory.value());
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Tile& tile) {
    double tiles = 0;
    for (const ExpertLoad& load : shape.loads) {
      tiles += load.experts * std::ceil(load.rows / tile.m);
    }
    const double ctas = tiles * std::ceil(columns / tile.n);
    const double compute = 2 * tile.m * tile.n * depth / rate;
    const double feed =
        (tile.m * activation + tile.n * weight) * depth /
        std::min(p.feed.value(), p.shared_feed.value() / std::min(ctas, device.sms));
    const double filled = std::max(ctas / device.sms, 1.0);
    const double waves = filled + p.quantisation * (std::ceil(filled) - filled);
    const double tail = 2 * tile.m * tile.n / p.epilogue.value();
    if (waves * (std::max(compute, feed) + tail) >= least) return;
    const double all = waves * (norm(compute, feed, p.overlap) + tail);
    if (all >= least) return;
    least = all;
    best.compute = all;
    best.feed = waves * feed;
  };
  if (shape.tiles == MoeTiles::best) {
    for (const Tile& tile : tuned_tiles) consider(tile);
  } else {
    Tile tile = shape.tokens <= shape.experts / shape.ep ? narrow_triton : wide_triton;
    if (shape.format == MoeFormat::fp8_block) tile.n = block_columns;
    consider(tile);
  }
  return best;
}

}  // namespace

std::span<const Parameter<P>> MoeParameters::parameters() { return parameter_table; }

std::string_view to_text(MoeFormat format) {
  constexpr std::array names = {"bf16", "fp8", "fp8_block", "w4a16_mxfp4", "int4_wo"};
  return names[static_cast<std::size_t>(format)];
}

Precision precision_of(MoeFormat format) {
  return activation_bytes(format) == 1 ? Precision::fp8 : Precision::bf16;
}

MoeShape with_loads(MoeShape shape, double skew) {
  shape.loads = fullest_rank({.tokens = shape.tokens,
                              .topk = shape.topk,
                              .experts = shape.experts,
                              .ranks = shape.ep,
                              .skew = skew});
  return shape;
}

KernelTime moe_time(const MoeShape& shape, const MoeParameters& p, const Device& device) {
  const auto hidden = static_cast<double>(shape.hidden);
  const double inter = static_cast<double>(shape.inter) / static_cast<double>(shape.tp);
  const double up = shape.gated ? 2 * inter : inter;
  const double rows = rows_of(shape.loads);
  const double copies = static_cast<double>(shape.tokens) * static_cast<double>(shape.topk);
  const double local = static_cast<double>(shape.experts) / static_cast<double>(shape.ep);

  const Grouped first = product(shape, up, hidden, p, device);
  const Grouped second = product(shape, hidden, inter, p, device);

  // A row in and out as it is gathered and put back, the product's result in, activations out;
  // 16-bit.
  const double row = 2 * (up + inter + 2 * hidden);
  const double moved = rows * row;
  const double others =
      moved / p.rows_rate.value() + copies * row / p.copies_rate.value() + local * p.expert.value();
  const double compute = first.compute + second.compute, memory = first.memory + second.memory;
  const Precision precision = precision_of(shape.format);

  KernelTime answer;
  answer.flop = Flop(2 * rows * hidden * (up + inter));
  answer.bytes = Bytes(first.traffic + second.traffic + moved);
  answer.start = p.start + Seconds(others);
  answer.compute = Seconds(compute);
  answer.feed = Seconds(first.feed + second.feed);
  answer.memory = Seconds(memory);
  const Demand demand = {
      .fixed = answer.start,
      .compute = answer.compute,
      .memory = answer.memory,
      .overlap = p.overlap,
      .switching = answer.flop * device.power.matrix[static_cast<std::size_t>(precision)],
      .traffic = answer.bytes * device.power.memory};
  const Operating operating = operate(demand, device.power, device.limit);
  answer.time = operating.time;
  answer.clock = operating.clock;
  answer.power = operating.power;
  answer.bound = operating.limited                  ? Bound::power
                 : answer.start > 0.5 * answer.time ? Bound::latency
                 : memory > compute                 ? Bound::memory
                 : 2 * answer.feed > answer.compute ? Bound::feed
                                                    : Bound::compute;
  return answer;
}

}  // namespace orrery

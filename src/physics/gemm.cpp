#include "physics/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace orrery {
namespace {

using P = GemmParameters;
constexpr std::array<Parameter<P>, 13> parameter_table = {{
    {{"start", 0.5e-6, 40e-6, 2.6e-6, "start of the kernel"}, &P::start},
    {{"efficiency", 0.4, 1.0, 0.90, "issue limit of a large tile"}, &P::efficiency},
    {{"feed", 10e9, 600e9, 128e9, "operands into one SM"}, &P::feed},
    {{"shared_feed", 1e12, 60e12, 15e12, "operands out of L2"}, &P::shared_feed},
    {{"stream", 0.4, 1.0, 0.825, "share of the memory bandwidth"}, &P::stream},
    {{"overlap", 1.2, 10, 4.1, "exponent of the norm"}, &P::overlap},
    {{"epilogue", 2e9, 300e9, 30e9, "results out of one SM"}, &P::epilogue},
    {{"split", 0.1e-6, 20e-6, 2.6e-6, "adding the parts of a split k"}, &P::split},
    {{"quantisation", 0.001, 1.0, 0.04, "of waves"}, &P::quantisation},
    {{"resident_weights", 0.05e6, 100e6, 4.6e6, "weights that stay in L2"}, &P::resident_weights},
    {{"resident_operands", 0.05e6, 200e6, 24e6, "operands likewise"}, &P::resident_operands},
    {{"quantise", 0.05e-6, 40e-6, 2e-6, "quantise kernels"}, &P::quantise},
    {{"quantise_rate", 100e9, 20e12, 1.3e12, "likewise, a byte"}, &P::quantise_rate},
}};

// --- formats ------------------------------------------------------------------------------------

struct Format {
  std::string_view name;
  Precision precision;
  double weight, input;  // bytes an element
  bool quantised;        // inputs are brought to 8 bits
};
constexpr std::array<Format, 10> formats = {{
    {"fp32", Precision::fp32, 4, 4, false},
    {"tf32", Precision::tf32, 4, 4, false},
    {"fp16", Precision::fp16, 2, 2, false},
    {"bf16", Precision::bf16, 2, 2, false},
    {"fp8", Precision::fp8, 1, 1, true},
    {"fp8_block", Precision::fp8, 1, 1, true},
    {"int8", Precision::int8, 1, 1, false},
    {"int8_smoothquant", Precision::int8, 1, 1, true},
    {"int8_weight_only", Precision::bf16, 1, 2, false},
    {"int4_weight_only", Precision::bf16, 0.5, 2, false},
}};
const Format& format_of(GemmFormat format) { return formats[static_cast<std::size_t>(format)]; }

// --- tiles --------------------------------------------------------------------------------------

struct Tile {
  double m, n, split = 1;
  bool paired = false;  // two along m share operands, and come in twos
};

// The shapes that vendor libraries choose from, and how many parts k may be cut into.
std::vector<Tile> free_tiles() {
  std::vector<Tile> tiles;
  for (const auto& [m, n] : {std::pair{64, 16},
                             {64, 32},
                             {64, 64},
                             {64, 128},
                             {128, 64},
                             {128, 128},
                             {64, 256},
                             {128, 256},
                             {256, 128}}) {
    for (const int split : {1, 2, 3, 4, 6, 8, 12, 16}) {
      tiles.push_back({double(m), double(n), double(split)});
    }
  }
  return tiles;
}

std::vector<Tile> deepgemm_tiles() {
  std::vector<Tile> tiles = {{256, 128}};
  for (const int m : {64, 128}) {
    for (int n = 16; n <= 256; n += 16) tiles.push_back({double(m), double(n)});
  }
  return tiles;
}

constexpr std::array few_rows = {Tile{64, 16}, Tile{64, 32}, Tile{64, 64}, Tile{64, 128}};
constexpr std::array some_rows = {Tile{64, 128}};
constexpr std::array many_rows = {Tile{128, 128, 1, true}};

std::span<const Tile> tiles_for(TilePolicy policy, double m) {
  static const std::vector<Tile> free = free_tiles(), deepgemm = deepgemm_tiles();
  switch (policy) {
    case TilePolicy::free:
      return free;
    case TilePolicy::deepgemm:
      return deepgemm;
    case TilePolicy::cutlass:
      break;
  }
  if (m <= 64) return few_rows;
  if (m <= 128) return some_rows;
  return many_rows;
}

// --- the model ----------------------------------------------------------------------------------

// Share of `bytes` that a benchmark's loop finds in L2.
double resident(double bytes, Bytes half) {
  const double ratio = bytes / half.value();
  return 1 / (1 + ratio * ratio * ratio * ratio);
}

// A shape as numbers of one GPU: bytes, and what each SM does in a second.
struct Work {
  double m, n, k, batch, result;
  double weight, input;    // bytes an element
  double weights, inputs;  // bytes
  double sms, rate;        // FLOP/s of one SM at the issue limit
  double memory;           // seconds of traffic
};

double traffic_time(const Work& work, const GemmShape& shape, const P& p, const Device& device) {
  const double others = work.inputs + work.result * work.batch * work.m * work.n;
  double traffic = work.weights + others;
  if (shape.replayed) {
    traffic = work.weights * (1 - resident(work.weights, p.resident_weights)) +
              others * (1 - resident(work.weights + others, p.resident_operands));
  }
  return traffic / (p.stream * device.memory.value());
}

Work work_of(const GemmShape& shape, const P& p, const Device& device) {
  const Format& format = format_of(shape.format);
  Work work{};
  work.m = static_cast<double>(shape.m);
  work.n = static_cast<double>(shape.n);
  work.k = static_cast<double>(shape.k);
  work.batch = static_cast<double>(shape.batch);
  work.result = shape.result;
  work.input = format.input;
  work.weight = shape.sparse ? 0.5 * format.weight + 0.125 : format.weight;
  work.weights = work.batch * work.n * work.k * work.weight;
  work.inputs = work.batch * work.m * work.k * work.input;
  work.sms = device.sms;
  work.rate =
      device.peak(format.precision).value() / device.sms * p.efficiency * (shape.sparse ? 2 : 1);
  work.memory = traffic_time(work, shape, p, device);
  return work;
}

// What one choice of tile costs: `busy` is of the SMs, `joined` of adding the parts of k.
struct Cost {
  double ctas, waves, compute, feed, tail, joined;
  double least(double memory) const {
    return std::max(waves * (std::max(compute, feed) + tail), memory) + joined;
  }
  double busy(double overlap) const { return waves * (norm(compute, feed, overlap) + tail); }
};

Cost cost_of(const Tile& tile, const Work& work, const P& p) {
  Cost cost{};
  double rows = std::ceil(work.m / tile.m);
  if (tile.paired) rows = 2 * std::ceil(rows / 2);
  cost.ctas = work.batch * rows * std::ceil(work.n / tile.n) * tile.split;
  const double depth = std::ceil(work.k / tile.split / 64) * 64;
  const double filled = std::max(cost.ctas / work.sms, 1.0);
  cost.waves = filled + p.quantisation * (std::ceil(filled) - filled);
  cost.compute = 2 * tile.m * tile.n * depth / work.rate;
  cost.feed = (tile.m * work.input + tile.n * work.weight) * depth /
              std::min(p.feed.value(), p.shared_feed.value() / std::min(cost.ctas, work.sms));
  cost.tail = 2 * tile.m * tile.n / p.epilogue.value();
  if (tile.split > 1) {
    cost.joined =
        p.split.value() + 8 * work.batch * work.m * work.n * tile.split / p.shared_feed.value();
  }
  return cost;
}

// A k is cut only where its tiles leave SMs idle, into parts of 128 at least.
bool worth_cutting(const Tile& tile, const Cost& cost, const Work& work) {
  return tile.split == 1 || (cost.ctas <= 2 * work.sms && work.k / tile.split >= 128);
}

struct Choice {
  Tile tile{};
  Cost cost{};
  double busy = 0, time = std::numeric_limits<double>::infinity();
};

Choice best_tile(const GemmShape& shape, const Work& work, const P& p) {
  Choice best;
  for (const Tile& tile : tiles_for(shape.policy, work.m)) {
    const Cost cost = cost_of(tile, work, p);
    // The norms only add: a choice whose largest part is no faster needs none of them.
    if (!worth_cutting(tile, cost, work) || cost.least(work.memory) >= best.time) continue;
    const double busy = cost.busy(p.overlap);
    const double time = norm(busy, work.memory, p.overlap) + cost.joined;
    if (time < best.time) best = {tile, cost, busy, time};
  }
  return best;
}

Bound bound_of(const GemmTime& time, bool limited, double busy) {
  if (time.start > 0.5 * time.time) return Bound::latency;
  if (time.memory.value() > busy) return Bound::memory;
  if (limited) return Bound::power;
  return time.feed > time.compute ? Bound::feed : Bound::compute;
}

}  // namespace

std::span<const Parameter<P>> GemmParameters::parameters() { return parameter_table; }

std::string_view to_text(GemmFormat format) { return format_of(format).name; }

std::optional<GemmFormat> gemm_format_named(std::string_view name) {
  const auto found = std::ranges::find(formats, name, &Format::name);
  if (found == formats.end()) return std::nullopt;
  return static_cast<GemmFormat>(found - formats.begin());
}

Precision precision_of(GemmFormat format) { return format_of(format).precision; }

TilePolicy policy_of(std::string_view library, GemmFormat format) {
  if (format == GemmFormat::fp8_block) return TilePolicy::deepgemm;
  const bool serving = library == "vllm" || library == "sglang";
  if (library == "deepgemm") return TilePolicy::deepgemm;
  return serving && format == GemmFormat::fp8 ? TilePolicy::cutlass : TilePolicy::free;
}

GemmTime gemm_time(const GemmShape& shape, const P& p, const Device& device) {
  const Work work = work_of(shape, p, device);
  const Choice best = best_tile(shape, work, p);
  const Format& format = format_of(shape.format);
  GemmTime time;
  time.tile_m = static_cast<std::int64_t>(best.tile.m);
  time.tile_n = static_cast<std::int64_t>(best.tile.n);
  time.splits = static_cast<std::int64_t>(best.tile.split);
  time.ctas = best.cost.ctas;
  time.waves = best.cost.waves;
  time.flop = Flop(2 * work.batch * work.m * work.n * work.k);
  time.bytes = Bytes(work.weights + work.inputs + work.result * work.batch * work.m * work.n);
  time.start = p.start;
  if (format.quantised && shape.quantises) {
    time.start += p.quantise + Bytes(3 * work.batch * work.m * work.k) / p.quantise_rate;
  }
  time.memory = Seconds(work.memory);

  const auto precision = static_cast<std::size_t>(format.precision);
  const Demand demand = {
      .fixed = time.start + Seconds(best.cost.joined),
      .compute = Seconds(best.busy),
      .memory = time.memory,
      .overlap = p.overlap,
      .switching = time.flop * device.power.matrix[precision],
      .traffic = work.memory * p.stream * device.memory * Seconds(1) * device.power.memory};
  const Operating operating = operate(demand, device.power, device.limit);
  time.time = operating.time;
  time.clock = operating.clock;
  time.power = operating.power;
  const double slower = device.boost / operating.clock;
  time.compute = Seconds(best.cost.waves * best.cost.compute * slower);
  time.feed = Seconds(best.cost.waves * best.cost.feed * slower);
  time.bound = bound_of(time, operating.limited, best.busy * slower);
  return time;
}

}  // namespace orrery

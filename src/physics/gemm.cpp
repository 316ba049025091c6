#include "physics/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "physics/gemm_tiles.h"

namespace orrery {
namespace {

using P = GemmParameters;
constexpr std::array<Parameter<P>, 15> parameter_table = {{
    {{"start", 0.5e-6, 40e-6, 2.6e-6, "start of the kernel"}, &P::start},
    {{"efficiency", 0.4, 1.0, 0.90, "issue limit of a large tile"}, &P::efficiency},
    {{"feed", 10e9, 600e9, 128e9, "operands into one SM"}, &P::feed},
    {{"shared_feed", 1e12, 60e12, 15e12, "operands out of L2"}, &P::shared_feed},
    {{"stream", 0.4, 1.0, 0.825, "share of the memory bandwidth"}, &P::stream},
    {{"step", 1e-12, 10e-9, 0.3e-9, "latency of the main loop, for each of k"}, &P::step},
    {{"overlap", 1.2, 10, 4.1, "exponent of the norm"}, &P::overlap},
    {{"epilogue", 2e9, 300e9, 30e9, "results out of one SM"}, &P::epilogue},
    {{"split", 0.1e-6, 20e-6, 2.6e-6, "adding the parts of a split k"}, &P::split},
    {{"quantisation", 0.001, 1.0, 0.04, "of waves"}, &P::quantisation},
    {{"resident_weights", 0.05e6, 100e6, 4.6e6, "weights that stay in L2"}, &P::resident_weights},
    {{"resident_operands", 0.05e6, 200e6, 24e6, "operands likewise"}, &P::resident_operands},
    {{"quantise", 0.05e-6, 40e-6, 2e-6, "quantise kernels"}, &P::quantise},
    {{"quantise_rate", 100e9, 20e12, 1.3e12, "likewise, a byte"}, &P::quantise_rate},
    {{"quantise_row", 1e-12, 50e-9, 0.3e-9, "likewise, a row"}, &P::quantise_row},
}};

// --- formats ------------------------------------------------------------------------------------

struct Format {
  std::string_view name;
  Precision precision;
  double weight, input;  // bytes an element, with its scales
  bool quantised;        // inputs are brought to 8 bits
};
constexpr std::array<Format, 10> formats = {{
    {"fp32", Precision::fp32, 4, 4, false},
    {"tf32", Precision::tf32, 4, 4, false},
    {"fp16", Precision::fp16, 2, 2, false},
    {"bf16", Precision::bf16, 2, 2, false},
    {"fp8", Precision::fp8, 1, 1, true},
    {"fp8_block", Precision::fp8, 1 + 4.0 / (128 * 128), 1 + 4.0 / 128, true},
    {"int8", Precision::int8, 1, 1, false},
    {"int8_smoothquant", Precision::int8, 1, 1, true},
    {"int8_weight_only", Precision::bf16, 1, 2, false},
    {"int4_weight_only", Precision::bf16, 0.5, 2, false},
}};
const Format& format_of(GemmFormat format) { return formats[static_cast<std::size_t>(format)]; }

// --- the model ----------------------------------------------------------------------------------

// Share of `bytes` that a benchmark's loop finds in L2.
double resident(double bytes, Bytes half) {
  const double ratio = bytes / half.value();
  return 1 / (1 + ratio * ratio * ratio * ratio);
}

// A shape as numbers of one GPU.
struct Work {
  double m, n, k, batch, result;
  double weight, input;     // bytes an element
  double weights, inputs;   // bytes
  double sms, rate;         // FLOP/s of one SM at the issue limit
  double l2, bandwidth;     // bytes, and bytes a second out of memory
  double traffic;           // bytes, each operand once
  bool hidden, short_walk;  // see hides_epilogue, walks_shorter_side
  double others() const { return inputs + result * batch * m * n; }
};

double traffic_of(const Work& work, const GemmShape& shape, const P& p) {
  const double others = work.others();
  if (!shape.replayed) return work.weights + others;
  return work.weights * (1 - resident(work.weights, p.resident_weights)) +
         others * (1 - resident(work.weights + others, p.resident_operands));
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
  const bool sparse = shape.sparse && device.sparsity > 1;
  work.weight = sparse ? 0.5 * format.weight + 0.125 : format.weight;
  work.weights = work.batch * work.n * work.k * work.weight;
  work.inputs = work.batch * work.m * work.k * work.input;
  work.sms = device.sms;
  work.rate = device.peak(format.precision).value() / device.sms * p.efficiency *
              (sparse ? device.sparsity : 1);
  work.l2 = device.l2.value();
  work.bandwidth = p.stream * device.memory.value();
  work.traffic = traffic_of(work, shape, p);
  work.hidden = hides_epilogue(shape.policy, device.architecture);
  work.short_walk = walks_shorter_side(shape.policy);
  return work;
}

// What one choice of tile costs: `joined` is of adding the parts of k.
struct Cost {
  double ctas, waves, compute, feed, results, joined;
  bool hidden;

  double busy(double main) const {
    return hidden ? waves * main + results : waves * (main + results);
  }
  double least() const {
    const double main = std::max(compute, feed);
    return busy(hidden ? std::max(main, results) : main);
  }
  double busy_at(double overlap) const {
    const double main = norm(compute, feed, overlap);
    return busy(hidden ? norm(main, results, overlap) : main);
  }
};

Cost cost_of(const Tile& tile, const Work& work, const P& p) {
  Cost cost{};
  const double rows = tile.group * std::ceil(work.m / (tile.m * tile.group));
  cost.ctas = work.batch * rows * std::ceil(work.n / tile.n) * tile.split;
  const double depth = std::ceil(work.k / tile.split / 64) * 64;
  const double filled = std::max(cost.ctas / work.sms, 1.0);
  const double feed =
      std::min(p.feed.value(), p.shared_feed.value() / std::min(cost.ctas, work.sms));
  cost.waves = filled + p.quantisation * (std::ceil(filled) - filled);
  cost.compute = 2 * tile.m * tile.n * depth / work.rate;
  cost.feed = depth * ((tile.m * work.input + tile.n * work.weight) / feed + p.step.value());
  cost.results = work.result * tile.m * tile.n / p.epilogue.value();
  cost.hidden = work.hidden;
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

// Bytes read again by a walk along the shorter side: SMs that span it hold a few tiles of the other
// side, and each step along that one reads the whole operand of the shorter side, unless L2 still
// has it. Half of L2, since each of its two halves keeps what its own SMs read (Hopper, A100).
double read_again(const Tile& tile, const Work& work) {
  if (!work.short_walk) return 0;
  const double rows = std::ceil(work.m / tile.m), columns = std::ceil(work.n / tile.n);
  const bool along_m = rows < columns;
  const double steps = std::max(rows, columns) / std::max(1.0, work.sms / std::min(rows, columns));
  const double operand = (along_m ? work.inputs : work.weights) / work.batch;
  if (steps <= 1) return 0;
  return work.batch * operand * (steps - 1) * (1 - resident(operand, Bytes(work.l2 / 2)));
}

struct Choice {
  Tile tile;
  Cost cost{};
  double busy = 0, traffic = 0, time = std::numeric_limits<double>::infinity();
};

Choice best_tile(const GemmShape& shape, const Work& work, const P& p) {
  Choice best;
  const double memory = work.traffic / work.bandwidth;
  for (const Tile& tile : tiles_for(shape)) {
    const Cost cost = cost_of(tile, work, p);
    // The norms only add: a choice whose largest part is no faster needs none of them.
    if (!worth_cutting(tile, cost, work) ||
        std::max(cost.least(), memory) + cost.joined >= best.time) {
      continue;
    }
    const double traffic = work.traffic + read_again(tile, work);
    const double busy = cost.busy_at(p.overlap);
    const double time = norm(busy, traffic / work.bandwidth, p.overlap) + cost.joined;
    if (time < best.time) best = {tile, cost, busy, traffic, time};
  }
  return best;
}

// Of the kernels that bring inputs to 8 bits and write their scales.
Seconds quantise_time(const GemmShape& shape, const Work& work, const P& p) {
  if (!format_of(shape.format).quantised || !shape.quantises) return Seconds();
  const double rows = work.batch * work.m;
  const Seconds bytes = Bytes((2 + work.input) * rows * work.k) / p.quantise_rate;
  return p.quantise + Seconds(norm(bytes.value(), rows * p.quantise_row.value(), p.overlap));
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
  if (format == GemmFormat::fp8_block || library == "deepgemm") return TilePolicy::deepgemm;
  if (format != GemmFormat::fp8) return TilePolicy::free;
  if (library == "vllm") return TilePolicy::vllm;
  return library == "sglang" ? TilePolicy::sglang : TilePolicy::free;
}

GemmTime gemm_time(const GemmShape& shape, const P& p, const Device& device) {
  const Work work = work_of(shape, p, device);
  const Choice best = best_tile(shape, work, p);
  GemmTime time;
  time.tile_m = static_cast<std::int64_t>(best.tile.m);
  time.tile_n = static_cast<std::int64_t>(best.tile.n);
  time.splits = static_cast<std::int64_t>(best.tile.split);
  time.ctas = best.cost.ctas;
  time.waves = best.cost.waves;
  time.flop = Flop(2 * work.batch * work.m * work.n * work.k);
  time.bytes = Bytes(work.weights + work.others());
  time.start = p.start + quantise_time(shape, work, p);
  time.memory = Seconds(best.traffic / work.bandwidth);

  const auto precision = static_cast<std::size_t>(precision_of(shape.format));
  const Demand demand = {.fixed = time.start + Seconds(best.cost.joined),
                         .compute = Seconds(best.busy),
                         .memory = time.memory,
                         .overlap = p.overlap,
                         .switching = time.flop * device.power.matrix[precision],
                         .traffic = Bytes(best.traffic) * device.power.memory};
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

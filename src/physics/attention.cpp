#include "physics/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {
namespace {

using P = AttentionParameters;
constexpr std::array<Parameter<P>, 12> parameter_table = {{
    {{"start", 1e-6, 40e-6, 9e-6, "start of the kernels"}, &P::start},
    {{"efficiency", 0.1, 1.0, 0.85, "issue limit of the matrix products"}, &P::efficiency},
    {{"softmax", 0.01, 8.0, 0.8, "exponentials a pair that nothing hides"}, &P::softmax},
    {{"tile", 48, 192, 120, "query rows of a CTA"}, &P::tile},
    {{"cta", 0.02e-6, 20e-6, 2e-6, "of a tile beside its keys"}, &P::cta},
    {{"rows", 3e9, 600e9, 40e9, "queries and results through one SM"}, &P::rows},
    {{"packed", 0.01e-6, 5e-6, 0.4e-6, "of a tile of several heads"}, &P::packed},
    {{"tail", 0.01, 2.0, 0.4, "tiles of the last SM alone"}, &P::tail},
    {{"stream", 0.2, 0.95, 0.8, "share of the memory bandwidth"}, &P::stream},
    {{"resident", 0.05e6, 200e6, 10e6, "operands that stay in L2"}, &P::resident},
    {{"write", 0.1e12, 20e12, 2e12, "into the cache"}, &P::write},
    {{"token", 1e-9, 1e-6, 80e-9, "of an SM, for a token it writes"}, &P::token},
}};

// Exponentials of one SM a clock (CUDA programming guide, all parts here).
constexpr double exponentials = 16;
// Keys of one step of a tile: 64 to 256 in public kernels.
constexpr double key_step = 128;

// Of flash3's tiles: they stand in a queue, the longest first.
constexpr double longest_sharpness = 16;
constexpr double memory_overlap = 4;

// Rows that a matrix instruction takes: 64 of a Hopper warpgroup, 16 of a warp before.
double padded_rows(double rows, GpuArchitecture architecture) {
  const double step = architecture >= GpuArchitecture::hopper ? 64 : 16;
  return std::ceil(rows / step) * step;
}

struct Tiles {
  double count, rows, keys, most_keys, splits;
};

// FlashAttention-3 splits the keys where tiles are fewer than SMs: into parts as long as each SM's
// share of all, and a tenth (hopper/flash_prepare_scheduler.cu, heuristics.h).
double splits_of(double sequence_tiles, double steps, double batch, double sms) {
  if (sequence_tiles >= 0.8 * sms || steps <= 4 || (steps <= 8 && sequence_tiles >= 32)) return 1;
  const double share = std::ceil(1.1 * sequence_tiles * steps * batch / sms);
  return std::clamp(std::ceil(steps / share), 1.0, 32.0);
}

Tiles tiles_of(const AttentionShape& shape, const AttentionExtent& x, double tile,
               const Device& device) {
  const bool packs = shape.kernels == AttentionKernels::flash3;
  const double group = packs ? x.group : 1, streams = packs ? x.kv_heads : x.heads;
  // FlashAttention-3 takes half as many rows again where they are narrow (hopper/tile_size.h).
  if (packs && x.head_dim <= 96) tile *= 1.5;
  const double rows = x.q_len * group;
  const double across = std::ceil(rows / tile);
  // Tokens of one tile: their keys begin and end that far apart.
  const double span = x.causal ? std::min(tile / group, x.q_len) : 0;
  const double whole = std::ceil(x.kv_len / key_step) * key_step;
  const double cut = 0.5 * (span + key_step);  // at each end of a tile's keys
  const double unwindowed = x.causal ? x.kv_len - 0.5 * (x.q_len - 1) : x.kv_len;
  Tiles tiles;
  tiles.rows = std::min(tile, padded_rows(rows, device.architecture));
  tiles.keys = std::min({x.pairs / x.q_len + 2 * cut, unwindowed + cut, whole});
  tiles.most_keys = std::min(std::min(x.window + span, x.kv_len) + 0.5 * key_step, whole);
  const double steps =
      std::ceil((x.sliding ? std::min(x.window + span + key_step, x.kv_len) : x.kv_len) / key_step);
  tiles.splits = packs ? splits_of(across * streams, steps, x.batch, device.sms) : 1;
  tiles.count = across * streams * x.batch * tiles.splits;
  return tiles;
}

}  // namespace

std::span<const Parameter<P>> AttentionParameters::parameters() { return parameter_table; }

KernelTime attention_time(const AttentionShape& shape, const AttentionParameters& p,
                          const Device& device) {
  const AttentionExtent x(shape);
  const double work = shape.backward ? 2.5 : 1;
  const double widths = x.head_dim + x.value_dim;
  const Precision precision = matrix_precision(shape, device);
  const double sm = device.peak(precision).value() / device.sms;
  const Tiles tiles = tiles_of(shape, x, p.tile, device);

  const double matrix = work * 2 * widths / (sm * p.efficiency);
  const double softmax = p.softmax / (exponentials * device.boost.value());
  const double part = tiles.rows / tiles.splits;
  const bool several_heads = shape.kernels == AttentionKernels::flash3 && x.group > 1;
  const double ends = p.cta.value() + tiles.rows * widths * 2 / p.rows.value() +
                      (several_heads ? p.packed.value() : 0);
  const double cta = part * tiles.keys * (matrix + softmax) + ends;
  const double longest = part * tiles.most_keys * (matrix + softmax) + ends;
  const double tail = tiles.count > device.sms ? p.tail * cta : 0;
  const double compute = norm(tiles.count * cta / device.sms + tail, longest, longest_sharpness);

  KernelTime answer;
  answer.flop = attention_flop(shape);
  const double bytes = attention_bytes(shape).value();
  const double missed = shape.replayed ? 1 - resident_share(bytes, p.resident) : 1;
  const double bandwidth = p.stream * device.memory.value();
  answer.bytes = Bytes(bytes * missed);
  answer.memory = Seconds(bytes * missed / bandwidth);
  double other = 0;
  if (shape.writes_cache) {
    const double tokens = x.batch * x.q_len;
    const double moved = tokens * x.kv_heads * widths * (2 + x.element);
    other += tokens * p.token.value() / device.sms + missed * moved / p.write.value();
  }
  if (tiles.splits > 1) {  // partial results in fp32, written and read
    other += x.batch * x.q_len * x.heads * x.value_dim * 8 * tiles.splits / device.memory.value();
  }
  answer.start = p.start;
  answer.compute = Seconds(compute);
  const Demand demand = {
      .fixed = p.start + Seconds(other),
      .compute = answer.compute,
      .memory = answer.memory,
      .overlap = memory_overlap,
      .switching = answer.flop * device.power.matrix[static_cast<std::size_t>(precision)],
      .traffic = answer.bytes * device.power.memory};
  const Operating operating = operate(demand, device.power, device.limit);
  answer.time = operating.time;
  answer.clock = operating.clock;
  answer.power = operating.power;
  answer.bound = operating.limited                  ? Bound::power
                 : answer.start > 0.5 * answer.time ? Bound::latency
                 : answer.memory > answer.compute   ? Bound::memory
                                                    : Bound::compute;
  return answer;
}

}  // namespace orrery

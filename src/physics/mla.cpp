#include "physics/mla.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

using Prefill = MlaPrefillParameters;
constexpr std::array<Parameter<Prefill>, 12> prefill_table = {{
    {{"start", 2e-6, 300e-6, 12e-6, "start of the kernels"}, &Prefill::start},
    {{"efficiency", 0.05, 1.0, 0.6, "of the peak, on a long walk"}, &Prefill::efficiency},
    {{"exponential", 0.001, 3, 0.4, "clocks of an exponential"}, &Prefill::exponential},
    {{"rows", 32, 256, 64, "queries of a tile"}, &Prefill::rows},
    {{"tile", 0.05e-6, 30e-6, 2.5e-6, "of a tile, at least"}, &Prefill::tile},
    {{"stream", 0.3, 1.0, 0.85, "share of the memory bandwidth"}, &Prefill::stream},
    {{"passes", 0.2, 10, 1.5, "over operands and results"}, &Prefill::passes},
    {{"overlap", 1.2, 10, 4, "exponent of the norm"}, &Prefill::overlap},
    {{"quantisation", 0.001, 1.0, 0.2, "of waves"}, &Prefill::quantisation},
    {{"tail", 0.001, 2, 0.3, "tiles at the end"}, &Prefill::tail},
    {{"longest_first", 1.5, 12, 2.5, "exponent of work and longest tile"}, &Prefill::longest_first},
    {{"host", 1e-6, 300e-6, 3e-6, "to issue the call"}, &Prefill::host},
}};

using Decode = MlaDecodeParameters;
constexpr std::array<Parameter<Decode>, 13> decode_table = {{
    {{"start", 2e-6, 300e-6, 8e-6, "start of the kernels"}, &Decode::start},
    {{"efficiency", 0.05, 1.0, 0.7, "of the peak"}, &Decode::efficiency},
    {{"feed", 1e9, 600e9, 25e9, "latents into one CTA"}, &Decode::feed},
    {{"resident", 1, 4, 1.4, "CTAs of an SM as fast as one"}, &Decode::resident},
    {{"parts", 1, 4, 2, "CTAs of a tile"}, &Decode::parts},
    {{"chunk", 16, 1e9, 64, "least keys of a part"}, &Decode::chunk},
    {{"tile", 0.05e-6, 30e-6, 4e-6, "of a CTA, at least"}, &Decode::tile},
    {{"stream", 0.03, 1.0, 0.93, "share of the memory bandwidth"}, &Decode::stream},
    {{"passes", 0.02, 10, 1.5, "over queries and results"}, &Decode::passes},
    {{"overlap", 2, 8, 3, "exponent of the norm"}, &Decode::overlap},
    {{"quantisation", 0.001, 1.0, 0.5, "of waves"}, &Decode::quantisation},
    {{"join", 0.05e-6, 30e-6, 1.5e-6, "of the parts"}, &Decode::join},
    {{"host", 1e-6, 300e-6, 3e-6, "to issue the call"}, &Decode::host},
}};

// Keys come in blocks of 64, the page of FlashMLA and the least tile of the others.
constexpr double block = 64;
// Heads of one CTA of decode; fewer are padded.
constexpr double head_tile = 64;
// Special function units of an SM, of all architectures from Volta on: results a clock.
constexpr double exponentials = 16;
// Queries, keys, values and results of calls are 16-bit, whatever the cache holds.
constexpr double element = 2;
constexpr std::array splits = {1.0,  2.0,  3.0,  4.0,  6.0,  8.0,  12.0,
                               16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0};
// How sharply the host's time and the kernels' are the longer of the two.
constexpr double host_sharpness = 8;

double waves(double ctas, double sms, double quantisation) {
  const double filled = std::max(ctas / sms, 1.0);
  return filled + quantisation * (std::ceil(filled) - filled);
}

struct Work {
  Seconds host, start, compute, memory;
  double overlap = 4;
  Flop flop;
  Bytes bytes;
  Precision precision = Precision::bf16;
  bool fed = false;  // the tiles wait for their operands, not for arithmetic
};

KernelTime answer_of(const Work& work, const Device& device) {
  KernelTime answer;
  answer.flop = work.flop;
  answer.bytes = work.bytes;
  answer.start = work.start;
  answer.compute = work.compute;
  answer.memory = work.memory;
  const Demand demand = {
      .fixed = work.start,
      .compute = work.compute,
      .memory = work.memory,
      .overlap = work.overlap,
      .switching = work.flop * device.power.matrix[static_cast<std::size_t>(work.precision)],
      .traffic = work.bytes * device.power.memory};
  const Operating operating = operate(demand, device.power, device.limit);
  answer.time = Seconds(norm(operating.time.value(), work.host.value(), host_sharpness));
  answer.clock = operating.clock;
  answer.power = operating.limited ? operating.power
                                   : drawn(demand.switching, demand.traffic, answer.time,
                                           device.power, device.limit);
  answer.bound = operating.limited                              ? Bound::power
                 : answer.start + work.host > 0.5 * answer.time ? Bound::latency
                 : work.memory > work.compute                   ? Bound::memory
                 : work.fed                                     ? Bound::feed
                                                                : Bound::compute;
  return answer;
}

}  // namespace

std::span<const Parameter<Prefill>> MlaPrefillParameters::parameters() { return prefill_table; }
std::span<const Parameter<Decode>> MlaDecodeParameters::parameters() { return decode_table; }

KernelTime mla_prefill_time(const MlaPrefillShape& shape, const MlaPrefillParameters& p,
                            const Device& device) {
  const auto batch = static_cast<double>(shape.batch), heads = static_cast<double>(shape.heads);
  const auto queries = static_cast<double>(shape.queries);
  const auto keys = std::max(static_cast<double>(shape.keys), queries);
  const MlaWidths& widths = shape.widths;
  const double width = shape.absorbed ? widths.absorbed_pair() : widths.expanded_pair();
  const double sm_rate = device.peak(shape.precision).value() / device.sms;
  const double pair = norm(2 * width / (sm_rate * p.efficiency),
                           p.exponential / (exponentials * device.boost.value()), 2);

  // Where all heads share their keys, a tile takes the heads of a token together.
  const double tiles = shape.absorbed ? batch * std::ceil(queries * heads / p.rows)
                                      : batch * heads * std::ceil(queries / p.rows);
  const double span = shape.absorbed ? p.rows / heads : p.rows;
  const double first = keys - queries;
  const double walked = first + std::min(0.5 * (queries + span), queries) + block;
  const double mean = p.rows * walked * pair + p.tile.value();
  const double longest = p.rows * (keys + block) * pair + p.tile.value();
  const double all = waves(tiles, device.sms, p.quantisation) * mean;
  const double late = tiles > device.sms ? p.tail * mean : 0;

  const double expanded = 2 * (widths.key + widths.rope) + 2 * widths.value;
  const double traffic = element * batch * heads * expanded * queries +
                         batch * queries * widths.cached() * (element + shape.element.value());
  const double pairs = batch * heads * queries * (first + 0.5 * (queries + 1));

  Work work;
  work.host = p.host;
  work.start = p.start;
  work.compute = Seconds(norm(all, longest, p.longest_first) + late);
  work.memory = Bytes(p.passes * traffic) / (p.stream * device.memory);
  work.overlap = p.overlap;
  work.flop = Flop(2 * width * pairs);
  work.bytes = Bytes(traffic);
  work.precision = shape.precision;
  return answer_of(work, device);
}

KernelTime mla_decode_time(const MlaDecodeShape& shape, const MlaDecodeParameters& p,
                           const Device& device) {
  const auto batch = static_cast<double>(shape.batch), heads = static_cast<double>(shape.heads);
  const auto keys = static_cast<double>(shape.keys), queries = static_cast<double>(shape.queries);
  const MlaWidths& widths = shape.widths;
  const double sm_rate = device.peak(shape.precision).value() / device.sms;
  const double rows = heads * queries;
  const double tiles = batch * std::ceil(rows / head_tile);
  const double compute = 2 * head_tile * widths.absorbed_pair() / (sm_rate * p.efficiency);
  const double feed = widths.cached() * shape.element.value() / p.feed.value();

  const double cache = batch * keys * widths.cached() * shape.element.value();
  const double calls = element * batch * rows * widths.absorbed_pair();
  const double memory = (cache + p.passes * calls) / (p.stream * device.memory.value());

  Work work;
  double least = std::numeric_limits<double>::infinity();
  for (const double s : splits) {
    if (s > 1 && keys / s < p.chunk) break;
    const double filled = waves(p.parts * tiles * s, device.sms, p.quantisation);
    const double walked = std::ceil(keys / s / block) * block / p.parts;
    const double busy = filled * walked * compute;
    const double fed = std::max(filled / p.resident, 1.0) * (walked * feed + p.tile.value());
    const double parts = 2 * sizeof(float) * s * batch * rows * widths.latent;
    const double joined = s > 1 ? p.join.value() + parts / device.memory.value() : 0;
    const double ctas = norm(busy, fed, 4);
    const double time = norm(ctas, memory, p.overlap) + joined;
    if (time >= least) continue;
    least = time;
    work.compute = Seconds(ctas);
    work.start = p.start + Seconds(joined);
    work.fed = fed > busy;
  }
  work.host = p.host;
  work.memory = Seconds(memory);
  work.overlap = p.overlap;
  work.flop = Flop(2 * widths.absorbed_pair() * batch * rows * keys);
  work.bytes = Bytes(cache + calls);
  work.precision = shape.precision;
  return answer_of(work, device);
}

}  // namespace orrery

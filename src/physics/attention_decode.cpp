#include "physics/attention_decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

using P = AttentionDecodeParameters;
constexpr std::array<Parameter<P>, 14> parameter_table = {{
    {{"start", 1e-6, 30e-6, 8e-6, "start of the kernels"}, &P::start},
    {{"sequence", 0.1e-9, 200e-9, 15e-9, "of the call, a sequence"}, &P::sequence},
    {{"head", 0.01e-9, 20e-9, 4e-9, "of the call, a head of keys of a sequence"}, &P::head},
    {{"feed", 4e9, 400e9, 50e9, "keys and values into one SM"}, &P::feed},
    {{"efficiency", 0.02, 1.0, 0.5, "issue limit of the matrix products"}, &P::efficiency},
    {{"cta", 0.05e-6, 20e-6, 1.5e-6, "of a CTA beside its keys"}, &P::cta},
    {{"at_once", 0.5, 8.0, 1.0, "CTAs of one SM"}, &P::at_once},
    {{"quantisation", 0.01, 1.0, 0.7, "of waves"}, &P::quantisation},
    {{"split", 0.01e-6, 15e-6, 2e-6, "adding the parts of split keys"}, &P::split},
    {{"stream", 0.2, 0.95, 0.9, "share of the memory bandwidth"}, &P::stream},
    {{"overlap", 1.0, 10.0, 4.0, "exponent of the norm"}, &P::overlap},
    {{"resident", 0.05e6, 200e6, 1e6, "cache that stays in L2"}, &P::resident},
    {{"alone", 0.05, 4.0, 1.0, "of a CTA whose head shares no keys"}, &P::alone},
    {{"regroup", 0.01e-6, 20e-6, 1e-6, "kernels that make rows of heads"}, &P::regroup},
}};

// Query rows of one CTA and keys of one of its steps.
struct Tile {
  double rows, keys;
};

// Of public kernels: hopper/tile_size.h of FlashAttention-3 with paged keys, and the split kernels
// of FlashAttention-2 (flash_fwd_launch_template.h). Of XQA: as fitted best.
Tile tile_of(const AttentionShape& shape) {
  const bool narrow = element_size(shape.cache) < Bytes(2);
  const std::int64_t width = shape.head_dim;
  switch (shape.kernels) {
    case AttentionKernels::flash3:
      return {width <= 128 ? 64.0 : 128.0, narrow         ? (width <= 192 ? 160.0 : 128.0)
                                           : width <= 128 ? 128.0
                                           : width <= 192 ? 96.0
                                                          : 80.0};
    case AttentionKernels::flash2:
      return {64, width <= 64 ? 256.0 : width <= 128 ? 128.0 : 64.0};
    case AttentionKernels::fmha:
      break;
  }
  return {16, 64};
}

constexpr std::array split_choices = {1.,  2.,  3.,  4.,  5.,  6.,  8.,  10., 12.,
                                      16., 20., 24., 32., 48., 64., 96., 128.};

struct Work {
  double ctas;    // of unsplit keys
  double steps;   // of keys, of an unsplit CTA
  double step;    // seconds
  double memory;  // seconds
};

double steps_of_part(const Work& work, double splits) { return std::ceil(work.steps / splits); }

double waves_time(const Work& work, double splits, double ends, const P& p, const Device& device) {
  const double filled = std::max(work.ctas * splits / (p.at_once * device.sms), 1.0);
  const double waves = filled + p.quantisation * (std::ceil(filled) - filled);
  return waves * (steps_of_part(work, splits) * work.step + ends);
}

// As long as each SM's share of all steps and a tenth (hopper/flash_prepare_scheduler.cu), where
// the heads of one sequence do not fill the SMs (heuristics.h).
double flash3_splits(const Work& work, double heads, const Device& device) {
  const double steps = std::ceil(work.steps);
  if (heads >= 0.8 * device.sms || steps <= 4 || (steps <= 8 && heads >= 32)) return 1;
  const double share = std::ceil(1.1 * steps * work.ctas / device.sms);
  return std::clamp(std::ceil(steps / share), 1.0, 32.0);
}

}  // namespace

std::span<const Parameter<P>> AttentionDecodeParameters::parameters() { return parameter_table; }

KernelTime attention_decode_time(const AttentionShape& shape, const P& p, const Device& device) {
  const AttentionExtent x(shape);
  const Tile tile = tile_of(shape);
  const double widths = x.head_dim + x.value_dim;
  const Precision precision = matrix_precision(shape, device);
  const double sm = device.peak(precision).value() / device.sms;
  const double bandwidth = p.stream * device.memory.value();

  KernelTime answer;
  answer.flop = attention_flop(shape);
  const double bytes = attention_bytes(shape).value();
  answer.bytes = Bytes(shape.replayed ? bytes * (1 - resident_share(bytes, p.resident)) : bytes);
  answer.memory = Seconds(answer.bytes.value() / bandwidth);
  const double loaded = tile.keys * widths * x.element / p.feed.value();
  const double multiplied = tile.keys * tile.rows * 2 * widths / (sm * p.efficiency);
  Work work;
  work.ctas = x.batch * x.kv_heads * std::ceil(x.group * x.q_len / tile.rows);
  // A window begins anywhere in a step.
  work.steps = std::min(std::ceil(x.seen / tile.keys) + (x.sliding ? 0.5 : 0),
                        std::ceil(x.kv_len / tile.keys));
  work.step = norm(loaded, multiplied, p.overlap);
  work.memory = answer.memory.value();

  const bool grouped = x.group > 1;
  const bool alone = !grouped && shape.kernels != AttentionKernels::flash3;
  const double ends = p.cta.value() * (alone ? p.alone : 1);
  if (alone) work.step *= p.alone;
  // Partial results are in fp32, written and read.
  const double partial = x.batch * x.q_len * x.heads * x.value_dim * 8 / bandwidth;
  double least = std::numeric_limits<double>::infinity(), joining = 0, ctas = 0;
  const auto consider = [&](double splits) {
    const double taken = std::ceil(work.steps / steps_of_part(work, splits));
    const double compute = waves_time(work, taken, ends, p, device);
    const double joined = taken > 1 ? p.split.value() + partial * taken : 0;
    const double time = norm(compute, work.memory, p.overlap) + joined;
    if (time >= least) return;
    least = time;
    joining = joined;
    ctas = compute;
  };
  if (shape.kernels == AttentionKernels::flash3) {
    consider(flash3_splits(work, x.kv_heads, device));
  } else {
    for (const double splits : split_choices) consider(splits);
  }

  // q of [sequence, head of keys, head] becomes rows by a copy, and the result by another, unless
  // one of these counts is 1 (vllm-flash-attn, mha_varlen_fwd).
  const bool regroups =
      shape.kernels == AttentionKernels::flash2 && grouped && x.batch > 1 && x.kv_heads > 1;
  answer.start =
      p.start + (regroups ? p.regroup : Seconds()) + x.batch * (p.sequence + x.kv_heads * p.head);
  answer.compute = Seconds(ctas);
  answer.feed = Seconds(ctas * loaded / std::max(work.step, loaded));
  const Demand demand = {
      .fixed = answer.start + Seconds(joining),
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
                 : answer.memory > answer.compute   ? Bound::memory
                 : loaded > multiplied              ? Bound::feed
                                                    : Bound::compute;
  return answer;
}

}  // namespace orrery

#include "physics/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {
namespace {

using P = TrafficParameters;
// The highest share of the bandwidth that a published stream reaches is 0.95: BabelStream's dot
// product on H100 SXM, 3180 of 3350 GB/s.
constexpr std::array<Parameter<P>, 9> parameter_table = {{
    {{"start", 0.3e-6, 12e-6, 2e-6, "start of the kernel"}, &P::start},
    {{"row", 0.01e-9, 1e-6, 20e-9, "of an SM, for each of its rows"}, &P::row},
    {{"sm_rate", 3e9, 400e9, 40e9, "through one SM"}, &P::sm_rate},
    {{"at_once", 0.005, 32.0, 2.0, "rows of one SM"}, &P::at_once},
    {{"quantisation", 0.001, 1.0, 0.1, "of waves"}, &P::quantisation},
    {{"stream", 0.3, 0.95, 0.85, "share of the memory bandwidth"}, &P::stream},
    {{"resident", 0.1, 1.5, 0.7, "share of the L2 that keeps data"}, &P::resident},
    {{"tail", 1.0, 40.0, 4.0, "exponent of the fall of hits"}, &P::tail},
    {{"overlap", 1.0, 10.0, 4.0, "exponent of the norm"}, &P::overlap},
}};

// Operands as the memory table of data/measurements counts them. An AdamW step reads gradient,
// weight and two moments and writes the latter three.
constexpr std::array kernels = {
    TrafficKernel{"elementwise", "elementwise", 1, 1, 0, 1},
    TrafficKernel{"copy", "elementwise", 1, 1, 0, 0},
    TrafficKernel{"cast", "elementwise", 1, 1, 2, 1},
    TrafficKernel{"transpose", "elementwise", 1, 1, 0, 0},
    TrafficKernel{"permute", "elementwise", 1, 1, 0, 0},
    TrafficKernel{"embedding", "elementwise", 1, 1, 0, 0},
    TrafficKernel{"residual_add", "elementwise", 2, 1, 0, 1},
    TrafficKernel{"add", "elementwise", 2, 1, 0, 1},
    TrafficKernel{"sub", "elementwise", 2, 1, 0, 1},
    TrafficKernel{"mul", "elementwise", 2, 1, 0, 1},
    TrafficKernel{"div", "elementwise", 2, 1, 0, 1},
    TrafficKernel{"pow", "elementwise", 2, 1, 0, 2},
    TrafficKernel{"relu", "elementwise", 1, 1, 0, 1},
    TrafficKernel{"gelu", "elementwise", 1, 1, 0, 8},
    TrafficKernel{"silu", "elementwise", 1, 1, 0, 4},
    TrafficKernel{"tanh", "elementwise", 1, 1, 0, 4},
    TrafficKernel{"silu_and_mul", "gated", 2, 1, 0, 5},
    TrafficKernel{"gelu_and_mul", "gated", 2, 1, 0, 9},
    TrafficKernel{"rope", "rotary", 1, 1, 0, 3},
    TrafficKernel{"rmsnorm", "norm", 1, 1, 0, 4, true},
    TrafficKernel{"layernorm", "norm", 1, 1, 0, 7, true},
    // PyTorch keeps a row of softmax in registers or shared memory (SoftMax.cu).
    TrafficKernel{"softmax", "norm", 1, 1, 0, 5},
    TrafficKernel{"cross_entropy", "norm", 1, 0, 0, 4},
    TrafficKernel{"rmsnorm_residual", "norm_residual", 2, 2, 0, 5},
    TrafficKernel{"quantise_fp8", "quantise", 1, 1, 1, 3},
    TrafficKernel{"absmax", "absmax", 1, 0, 0, 1},
    TrafficKernel{"adamw", "elementwise", 4, 3, 0, 14},
    TrafficKernel{"stream_copy", "stream", 1, 1, 0, 0},
    TrafficKernel{"stream_mul", "stream", 1, 1, 0, 1},
    TrafficKernel{"stream_add", "stream", 2, 1, 0, 1},
    TrafficKernel{"stream_triad", "stream", 2, 1, 0, 2},
    TrafficKernel{"stream_dot", "stream", 2, 0, 0, 2},
};

// Share of `bytes` that an L2 which keeps `capacity` of them still holds: all below it and, with a
// rounded corner, (capacity / bytes)^tail above. A cache in strict least-recently-used order that
// is walked round and round falls off a cliff; one that a producer has just filled keeps a constant
// amount.
double kept(double bytes, double capacity, double tail) {
  constexpr double corner = 8;
  return std::pow(1 + std::pow(bytes / capacity, corner), -tail / corner);
}

}  // namespace

std::span<const Parameter<P>> TrafficParameters::parameters() { return parameter_table; }

std::span<const TrafficKernel> traffic_kernels() { return kernels; }

const TrafficKernel* traffic_kernel_named(std::string_view name) {
  const auto found = std::ranges::find(kernels, name, &TrafficKernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

TrafficShape traffic_shape(const TrafficKernel& kernel, std::int64_t rows, std::int64_t cols,
                           Bytes element) {
  TrafficShape shape;
  shape.rows = rows;
  shape.cols = cols;
  shape.read = kernel.read * element;
  shape.written = kernel.written * (kernel.result > 0 ? Bytes(kernel.result) : element);
  shape.flop = Flop(kernel.flop);
  shape.passes_twice = kernel.passes_twice;
  return shape;
}

KernelTime traffic_time(const TrafficShape& shape, const TrafficParameters& p,
                        const Device& device) {
  const auto rows = static_cast<double>(shape.rows), cols = static_cast<double>(shape.cols);
  const double width = cols * (shape.read + shape.written).value();
  const double bytes = rows * width;
  const double capacity = p.resident * device.l2.value();
  double traffic = bytes;
  if (shape.replayed) traffic *= 1 - kept(bytes, capacity, p.tail);
  if (shape.passes_twice) {
    const double in_flight = std::min(rows, p.at_once * device.sms);
    const double row = cols * shape.read.value();
    traffic += rows * row * (1 - kept(in_flight * row, capacity, p.tail));
  }
  const double filled = std::max(rows / (p.at_once * device.sms), 1.0);
  const double waves = filled + p.quantisation * (std::ceil(filled) - filled);
  const double wave = p.at_once * (p.row.value() + width / p.sm_rate.value());

  KernelTime answer;
  answer.flop = rows * cols * shape.flop;
  answer.bytes = Bytes(traffic);
  answer.start = p.start;
  answer.compute = Seconds(waves * wave);
  answer.memory = Bytes(traffic) / (p.stream * device.memory);
  const Demand demand = {.fixed = answer.start,
                         .compute = answer.compute,
                         .memory = answer.memory,
                         .overlap = p.overlap,
                         .switching = answer.flop * device.power.vector,
                         .traffic = answer.bytes * device.power.memory};
  const Operating operating = operate(demand, device.power, device.limit);
  answer.time = operating.time;
  answer.clock = operating.clock;
  answer.power = operating.power;
  answer.bound = operating.limited                  ? Bound::power
                 : answer.start > 0.5 * answer.time ? Bound::latency
                 : answer.memory >= answer.compute  ? Bound::memory
                                                    : Bound::feed;
  return answer;
}

}  // namespace orrery

// How long a kernel takes that moves bytes and computes little: norms, activations, rotary
// embeddings, casts, sums, softmax, optimizer steps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

/// What one such kernel reads, writes and computes for an element of its rows x cols.
struct TrafficKernel {
  std::string_view name;      ///< "rmsnorm"
  std::string_view variant;   ///< of the parameter sets that price it: "norm"
  double read, written;       ///< operands, each counted once
  double result;              ///< bytes of a written element; 0: those of one read
  double flop;                ///< about; an exponential counts as one
  bool passes_twice = false;  ///< statistics of a row first, then the row again
};

/// All that are known by name. Where nobody timed a kernel, its variant is "elementwise".
std::span<const TrafficKernel> traffic_kernels();
/// nullptr where there is none.
const TrafficKernel* traffic_kernel_named(std::string_view name);

struct TrafficShape {
  std::int64_t rows = 0, cols = 0;  ///< of the result; of what is read where nothing is written
  Bytes read, written;              ///< an element
  Flop flop;                        ///< an element
  bool passes_twice = false;
  /// Run again and again on the same operands, or on what the kernel before has just written: what
  /// the L2 holds is not fetched.
  bool replayed = false;

  Bytes bytes() const {
    return static_cast<double>(rows) * static_cast<double>(cols) * (read + written);
  }
};

/// `element`: of what is read, and written where the kernel has no other result.
TrafficShape traffic_shape(const TrafficKernel& kernel, std::int64_t rows, std::int64_t cols,
                           Bytes element);

/// time = start + norm(waves of rows through the SMs, HBM traffic).
struct TrafficParameters {
  Seconds start;            ///< of the kernel, at least
  Seconds row;              ///< of an SM for each row that it takes
  BytesPerSecond sm_rate;   ///< through one SM, at the boost clock
  double at_once = 2;       ///< rows of one SM; below 1: several SMs share a row
  double quantisation = 1;  ///< of waves: 0 smooth, 1 whole waves
  double stream = 1;        ///< share of the memory bandwidth
  double resident = 1;      ///< share of the L2 that keeps data for the next run
  double tail = 4;          ///< what still hits falls with working set^-tail; 1: a constant amount
  double overlap = 4;       ///< exponent of the norm

  static std::span<const Parameter<TrafficParameters>> parameters();
};

KernelTime traffic_time(const TrafficShape& shape, const TrafficParameters& parameters,
                        const Device& device);

}  // namespace orrery

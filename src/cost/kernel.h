// How long one kernel runs on one GPU.
#pragma once

#include "catalog/framework.h"
#include "cost/job_kernels.h"
#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

/// Prices the kernels of one GPU under one framework's habits.
///
/// Matrix products: physics/gemm.h, at the clock that the power limit leaves, by the kernels that
/// the catalog prefers. Whole steps keep `sustained` of that speed, the framework's `quality` times
/// it: the slowest of many GPUs sets the pace, and operands do not lie where a benchmark keeps
/// them. A grouped product has the CTAs of all its groups, at the framework's share of the speed
/// for experts.
///
/// What a custom model states: its FLOPs at the sustained rate of large products, or at the fp32
/// peak of the vector units, or its bytes at the attainable bandwidth: the slowest.
///
/// Attention: FLOPs of the attended half at a rate that grows as s / (s + half_length). Everything
/// else: bytes at the attainable share of the memory bandwidth.
class KernelModel {
 public:
  /// Keeps references.
  KernelModel(const JobKernels& kernels, const Framework& framework, AttentionKernel attention);

  Seconds operator()(const Kernel& kernel) const;

  /// FLOP/s that large products sustain at the power limit.
  FlopPerSecond sustained(Precision precision) const;
  BytesPerSecond stream() const { return stream_; }

 private:
  Seconds matmul(const Kernel& kernel, const Matmul& shape) const;
  double kept_speed(Precision precision) const;
  double experts_share(Precision precision, std::int64_t groups) const;
  double dequantised(const Kernel& kernel) const;
  Seconds attention(const Kernel& kernel, const Attention& shape) const;
  Seconds batched(const Kernel& kernel) const;
  // FLOPs at `rate` a second, or operands at the memory's pace: the slower.
  Seconds at_rate(const Kernel& kernel, double rate) const;
  Seconds traffic(const Kernel& kernel) const;
  const MatrixRates& matrix_rates(Precision precision) const;

  const JobKernels& kernels_;
  const Framework& framework_;
  const AttentionRates& attention_rates_;
  BytesPerSecond stream_;
};

}  // namespace orrery

// How long one kernel runs on one GPU.
#pragma once

#include "catalog/framework.h"
#include "catalog/gpu.h"
#include "catalog/kernel_rates.h"
#include "plan/program.h"
#include "units/quantity.h"

namespace orrery {

/// Prices the kernels of one GPU under one framework's habits and, optionally, a power limit.
///
/// Matrix products: for each tile (bm, bn) of a fixed set, with T = ceil(m/bm) ceil(n/bn) CTAs over
/// S SMs, one CTA takes w = (tc^q + tl^q)^(1/q) + 2 bm bn / E, tc = 2 bm bn k S / R, tl = (bm + bn)
/// k e / B; the product takes waves(T / S) w, joined with its HBM traffic by the same norm; the
/// best tile counts. R is the sustained share of the published peak, E the epilogue and B the feed
/// of one SM; waves are smooth or whole by the architecture's `quantisation`. Form and E, B, q:
/// fitted to public GEMM tables (see the sources of data/kernels); R: to whole training steps.
///
/// A grouped product has the CTAs of all its groups, at the framework's `grouped` share of the
/// rate.
///
/// What a custom model states: its FLOPs at the sustained rate of large products, or at the fp32
/// peak of the vector units, or its bytes at the attainable bandwidth: the slowest.
///
/// Attention: FLOPs of the attended half at a rate that grows as s / (s + half_length). Everything
/// else: bytes at the attainable share of the memory bandwidth.
class KernelModel {
 public:
  KernelModel(const Gpu& gpu, const KernelRates& rates, const Framework& framework,
              AttentionKernel attention, Watts power_limit);

  Seconds operator()(const Kernel& kernel) const;

  /// FLOP/s that large products sustain at the power limit.
  FlopPerSecond sustained(Precision precision) const;
  BytesPerSecond stream() const { return stream_; }

 private:
  Seconds matmul(const Kernel& kernel, const Matmul& shape) const;
  double experts_share(Precision precision, std::int64_t groups) const;
  double dequantised(const Kernel& kernel) const;
  Seconds attention(const Kernel& kernel, const Attention& shape) const;
  Seconds batched(const Kernel& kernel) const;
  // FLOPs at `rate` a second, or operands at the memory's pace: the slower.
  Seconds at_rate(const Kernel& kernel, double rate) const;
  Seconds traffic(const Kernel& kernel) const;
  const MatrixRates& matrix_rates(Precision precision) const;

  const Gpu& gpu_;
  const KernelRates& rates_;
  const Framework& framework_;
  const AttentionRates& attention_rates_;
  Watts power_limit_;
  BytesPerSecond stream_;
};

}  // namespace orrery

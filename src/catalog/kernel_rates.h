// How fast the kernels of one GPU architecture run, as shares of what the GPU's data sheet says.
#pragma once

#include <string>

#include "catalog/fact.h"
#include "catalog/gpu.h"
#include "units/quantity.h"

namespace orrery {

/// Matrix products of one element size. The form and its parameters: docs/architecture.md, "cost".
struct MatrixRates {
  Fact<double> sustained;         ///< share of the published dense peak, over whole training steps
  Fact<BytesPerSecond> feed;      ///< operands into one SM
  Fact<BytesPerSecond> epilogue;  ///< results out of one SM
  Fact<double> overlap;           ///< exponent of the norm that joins compute and traffic
  Fact<double> quantisation;      ///< of waves: 0 smooth, 1 whole waves
  Fact<double> misaligned;        ///< rate when a dimension is no multiple of 64
};

/// Attention as FLOPs at a rate that grows with the sequence.
struct AttentionRates {
  Fact<double> sustained;          ///< share of the published 16-bit peak at head dimension 128
  Fact<double> half_length;        ///< tokens at which half of it is reached
  Fact<double> backward;           ///< rate of the backward pass over the forward one
  Fact<double> head_dim_exponent;  ///< below 128
};

struct KernelRates {
  std::string name;
  GpuArchitecture architecture = GpuArchitecture::hopper;
  MatrixRates sixteen_bit, eight_bit;
  AttentionRates flash;             ///< tuned for this architecture
  AttentionRates early_flash;       ///< FlashAttention 1 and 2 as of 2023
  Fact<double> unfused;             ///< batched scores and values over the sustained matrix rate
  Fact<double> unfused_misaligned;  ///< the same where the head dimension is no multiple of 8
  Fact<double> stream;              ///< share of the memory bandwidth that a good kernel reaches
  Fact<Seconds> start;              ///< of a kernel whose launch is hidden
};

KernelRates kernel_rates_from_json(const Json& json, const std::string& place);

}  // namespace orrery

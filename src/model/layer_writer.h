// Appends tensors and forward operators to a Layer; for build.cpp only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/build.h"

namespace orrery {

// Vector operations an element of a norm: mean, variance, scale (and shift).
inline constexpr double kNormFlop = 6;

// Bytes of one element, to tell which of two formats is narrower.
inline bool narrower(Precision a, Precision b) { return element_size(a) < element_size(b); }

class LayerWriter {
 public:
  LayerWriter(std::string name, const Architecture& architecture, const GraphOptions& options);

  // [tokens, width] of what the layer computes, in `compute` unless said otherwise.
  TensorId activation(const std::string& name, std::int64_t width, Split split);
  TensorId activation(const std::string& name, std::int64_t width, Split split, Precision dtype);
  // The activation that enters the layer: [tokens, hidden].
  TensorId input();

  // [tokens, width_in] x [width_in, sum of widths] (+ bias) to one tensor for each output.
  struct Output {
    std::string name;
    std::int64_t width;
  };
  struct Linear {
    std::string name;
    TensorId x;
    std::int64_t width_in;
    std::vector<Output> outputs;
    Parallel parallel;  // columns or rows
    bool bias;
    Precision precision;
  };
  std::vector<TensorId> linear(const Linear& linear);

  TensorId norm(const std::string& name, TensorId x);
  TensorId residual(const std::string& name, TensorId x, TensorId branch);
  // `x` itself where the options have no dropout.
  TensorId dropout(const std::string& name, TensorId x, std::int64_t width, Split split);

  TensorId parameter(const std::string& name, std::int64_t elements, Precision dtype, Split split);
  // An operator of `rows` x `width` elements in the compute precision.
  void elementwise(const std::string& name, OpKind kind, std::int64_t width,
                   double flop_per_element, Parallel parallel, std::vector<TensorId> reads,
                   std::vector<TensorId> writes);
  void op(Op op);

  std::int64_t tokens() const { return tokens_; }
  // The layer with its gradients; `output` is none for the loss.
  Layer finish(TensorId output);

 private:
  TensorId cast(const std::string& name, TensorId x, std::int64_t width, Precision to);

  const Architecture& architecture_;
  const GraphOptions& options_;
  std::int64_t tokens_;
  Layer layer_;
};

}  // namespace orrery

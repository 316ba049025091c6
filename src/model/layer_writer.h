// Appends tensors and forward operators to a Layer; for build*.cpp only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/build.h"

namespace orrery {

// Vector operations an element, as the formulas read (tanh and exp counted as one). A norm: mean,
// variance, scale (and shift).
inline constexpr double kNormFlop = 6, kActivationFlop = 8, kSoftmaxFlop = 5;

// Bytes of one element, to tell which of two formats is narrower.
inline bool narrower(Precision a, Precision b) { return element_size(a) < element_size(b); }

// What becomes of a layer's weights; quantised ones are frozen and its matrices kept in 4 bits.
enum class WeightState { trained, frozen, quantised };

// Tensors have one row a token; those that are split as routed, one a token's copy.
class LayerWriter {
 public:
  LayerWriter(std::string name, const Architecture& architecture, const GraphOptions& options,
              WeightState weights);

  const Architecture& architecture() const { return architecture_; }
  const GraphOptions& options() const { return options_; }

  // [rows, width] of what the layer computes, in `compute` unless said otherwise.
  TensorId activation(const std::string& name, std::int64_t width, Split split);
  TensorId activation(const std::string& name, std::int64_t width, Split split, Precision dtype);
  // The activation that enters the layer.
  TensorId input(std::int64_t elements);
  TensorId input() { return input(tokens_ * architecture_.hidden); }

  // [rows, width_in] x [width_in, sum of widths] (+ bias) to one tensor for each output.
  struct Output {
    std::string name;
    std::int64_t width;
  };
  struct Linear {
    std::string name;
    TensorId x;
    std::int64_t width_in;
    std::vector<Output> outputs;
    Parallel parallel;  // columns, rows, tokens, expert_columns or expert_rows
    bool bias = false;
    Precision precision;
    bool adapted = false;                   // gains an adapter where the options have one
    std::int64_t groups = 1;                // matrices, of experts
    std::optional<Precision> written = {};  // of the outputs, where not `compute`
  };
  std::vector<TensorId> linear(const Linear& linear);

  TensorId norm(const std::string& name, TensorId x);
  // Over the last `width` elements of x.
  TensorId norm(const std::string& name, TensorId x, std::int64_t width, bool bias);
  TensorId residual(const std::string& name, TensorId x, TensorId branch);
  // `x` itself where the options have no dropout.
  TensorId dropout(const std::string& name, TensorId x, std::int64_t width, Split split);

  TensorId parameter(const std::string& name, std::int64_t elements, Precision dtype, Split split);
  // Set by other means than gradients; every rank holds it.
  TensorId untrained(const std::string& name, std::int64_t elements, Precision dtype);
  // An operator of rows x `width` elements in the compute precision.
  void elementwise(const std::string& name, OpKind kind, std::int64_t width,
                   double flop_per_element, Parallel parallel, std::vector<TensorId> reads,
                   std::vector<TensorId> writes);
  void op(Op op);

  // Under which name its input passes, if not as its output does.
  void takes(std::string name) { layer_.takes = std::move(name); }
  // The layer with its gradients; `output` is none for the loss. `input_trained`: something before
  // the layer is trained, so its input needs a gradient.
  Layer finish(TensorId output, bool input_trained = true);

 private:
  std::int64_t rows(Parallel parallel) const;
  TensorId cast(const std::string& name, TensorId x, std::int64_t width, Precision to);
  std::vector<TensorId> product(const Linear& linear, TensorId x);
  std::vector<TensorId> adapt(const Linear& linear, const std::vector<TensorId>& outputs);

  const Architecture& architecture_;
  const GraphOptions& options_;
  WeightState weights_;
  std::int64_t tokens_, copies_;
  Layer layer_;
};

}  // namespace orrery

#include "model/layer_writer.h"

namespace orrery {
namespace {

// Vector operations an element: the draw and the product of dropout; the scaling of a cast.
constexpr double kDropoutFlop = 2, kCastFlop = 1;

Parallel elementwise_split(Split split) {
  return split == Split::features ? Parallel::features : Parallel::tokens;
}

}  // namespace

LayerWriter::LayerWriter(std::string name, const Architecture& architecture,
                         const GraphOptions& options)
    : architecture_(architecture),
      options_(options),
      tokens_(options.micro_batch * options.seq_len) {
  layer_.name = std::move(name);
}

TensorId LayerWriter::activation(const std::string& name, std::int64_t width, Split split) {
  return activation(name, width, split, options_.compute);
}

TensorId LayerWriter::activation(const std::string& name, std::int64_t width, Split split,
                                 Precision dtype) {
  return layer_.tensors.push_back({name, TensorRole::activation, tokens_ * width, dtype, split});
}

TensorId LayerWriter::input() {
  return layer_.input = activation("input", architecture_.hidden, Split::sequence);
}

TensorId LayerWriter::parameter(const std::string& name, std::int64_t elements, Precision dtype,
                                Split split) {
  return layer_.tensors.push_back({name, TensorRole::parameter, elements, dtype, split});
}

void LayerWriter::op(Op op) { layer_.forward.push_back(layer_.ops.push_back(std::move(op))); }

void LayerWriter::elementwise(const std::string& name, OpKind kind, std::int64_t width,
                              double flop_per_element, Parallel parallel,
                              std::vector<TensorId> reads, std::vector<TensorId> writes) {
  op({.name = name,
      .kind = kind,
      .pass = Pass::forward,
      .shape = Elementwise{tokens_, width, flop_per_element},
      .parallel = parallel,
      .precision = options_.compute,
      .reads = std::move(reads),
      .writes = std::move(writes),
      .forward = {}});
}

TensorId LayerWriter::cast(const std::string& name, TensorId x, std::int64_t width, Precision to) {
  const Split split = layer_.tensors[x].split;
  const TensorId y = activation(name, width, split, to);
  elementwise(name, OpKind::cast, width, kCastFlop, elementwise_split(split), {x}, {y});
  return y;
}

std::vector<TensorId> LayerWriter::linear(const Linear& linear) {
  TensorId x = linear.x;
  if (narrower(linear.precision, layer_.tensors[x].dtype)) {
    x = cast(linear.name + ".cast", x, linear.width_in, linear.precision);
  }
  const bool columns = linear.parallel == Parallel::columns;
  std::int64_t width_out = 0;
  std::vector<TensorId> writes;
  for (const Output& output : linear.outputs) {
    width_out += output.width;
    writes.push_back(
        activation(output.name, output.width, columns ? Split::features : Split::sequence));
  }
  std::vector<TensorId> reads = {x, parameter(linear.name + ".weight", linear.width_in * width_out,
                                              linear.precision, Split::features)};
  if (linear.bias) {
    reads.push_back(parameter(linear.name + ".bias", width_out, options_.compute,
                              columns ? Split::features : Split::none));
  }
  op({.name = linear.name,
      .kind = OpKind::matmul,
      .pass = Pass::forward,
      .shape = Matmul{tokens_, width_out, linear.width_in},
      .parallel = linear.parallel,
      .precision = linear.precision,
      .reads = std::move(reads),
      .writes = writes,
      .forward = {}});
  return writes;
}

TensorId LayerWriter::norm(const std::string& name, TensorId x) {
  const std::int64_t width = architecture_.hidden;
  std::vector<TensorId> reads = {x,
                                 parameter(name + ".weight", width, options_.compute, Split::none)};
  if (architecture_.norm_bias) {
    reads.push_back(parameter(name + ".bias", width, options_.compute, Split::none));
  }
  const TensorId y = activation(name, width, Split::sequence);
  elementwise(name, OpKind::norm, width, kNormFlop, Parallel::tokens, std::move(reads), {y});
  return y;
}

TensorId LayerWriter::residual(const std::string& name, TensorId x, TensorId branch) {
  const std::int64_t width = architecture_.hidden;
  const TensorId y = activation(name, width, Split::sequence);
  elementwise(name, OpKind::residual, width, 1, Parallel::tokens, {x, branch}, {y});
  return y;
}

TensorId LayerWriter::dropout(const std::string& name, TensorId x, std::int64_t width,
                              Split split) {
  if (!options_.dropout) return x;
  const TensorId y = activation(name, width, split);
  const TensorId mask = activation(name + ".mask", width, split, Precision::int8);
  elementwise(name, OpKind::dropout, width, kDropoutFlop, elementwise_split(split), {x}, {y, mask});
  return y;
}

Layer LayerWriter::finish(TensorId output) {
  layer_.output = output;
  differentiate(layer_);
  return std::move(layer_);
}

}  // namespace orrery

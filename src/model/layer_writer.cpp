#include "model/layer_writer.h"

#include <cmath>

namespace orrery {
namespace {

// Vector operations an element: the draw and the product of dropout; the scaling of a cast.
constexpr double kDropoutFlop = 2, kCastFlop = 1;

bool routed(Split split) { return split == Split::routed || split == Split::routed_features; }

Split output_split(Parallel parallel) {
  switch (parallel) {
    case Parallel::columns:
      return Split::features;
    case Parallel::expert_columns:
      return Split::routed_features;
    case Parallel::expert_rows:
      return Split::routed;
    default:
      return Split::sequence;
  }
}

Split weight_split(Parallel parallel) {
  switch (parallel) {
    case Parallel::columns:
    case Parallel::rows:
      return Split::features;
    case Parallel::expert_columns:
    case Parallel::expert_rows:
      return Split::experts;
    default:
      return Split::none;
  }
}

// What is added to a whole sum (rows) is held whole.
Split bias_split(Parallel parallel) {
  return parallel == Parallel::rows ? Split::none : weight_split(parallel);
}

}  // namespace

LayerWriter::LayerWriter(std::string name, const Architecture& architecture,
                         const GraphOptions& options, WeightState weights)
    : architecture_(architecture),
      options_(options),
      weights_(weights),
      tokens_(options.micro_batch * options.seq_len),
      copies_(std::llround(static_cast<double>(tokens_ * architecture.experts.top_k) *
                           options.expert_load)) {
  layer_.name = std::move(name);
}

std::int64_t LayerWriter::rows(Parallel parallel) const {
  const bool copies = parallel == Parallel::routed || parallel == Parallel::expert_features ||
                      parallel == Parallel::expert_columns || parallel == Parallel::expert_rows;
  return copies ? copies_ : tokens_;
}

TensorId LayerWriter::activation(const std::string& name, std::int64_t width, Split split) {
  return activation(name, width, split, options_.compute);
}

TensorId LayerWriter::activation(const std::string& name, std::int64_t width, Split split,
                                 Precision dtype) {
  const std::int64_t rows = routed(split) ? copies_ : tokens_;
  return layer_.tensors.push_back({name, TensorRole::activation, rows * width, dtype, split});
}

TensorId LayerWriter::input(std::int64_t elements) {
  return layer_.input = layer_.tensors.push_back(
             {"input", TensorRole::activation, elements, options_.compute, Split::sequence});
}

TensorId LayerWriter::parameter(const std::string& name, std::int64_t elements, Precision dtype,
                                Split split) {
  return layer_.tensors.push_back({.name = name,
                                   .role = TensorRole::parameter,
                                   .elements = elements,
                                   .dtype = dtype,
                                   .split = split,
                                   .frozen = weights_ != WeightState::trained});
}

TensorId LayerWriter::untrained(const std::string& name, std::int64_t elements, Precision dtype) {
  const TensorId id = parameter(name, elements, dtype, Split::none);
  layer_.tensors[id].frozen = true;
  return id;
}

void LayerWriter::op(Op op) { layer_.forward.push_back(layer_.ops.push_back(std::move(op))); }

void LayerWriter::elementwise(const std::string& name, OpKind kind, std::int64_t width,
                              double flop_per_element, Parallel parallel,
                              std::vector<TensorId> reads, std::vector<TensorId> writes) {
  op({.name = name,
      .kind = kind,
      .pass = Pass::forward,
      .shape = Elementwise{rows(parallel), width, flop_per_element},
      .parallel = parallel,
      .precision = options_.compute,
      .reads = std::move(reads),
      .writes = std::move(writes),
      .forward = {}});
}

TensorId LayerWriter::cast(const std::string& name, TensorId x, std::int64_t width, Precision to) {
  const Split split = layer_.tensors[x].split;
  const TensorId y = activation(name, width, split, to);
  elementwise(name, OpKind::cast, width, kCastFlop, pointwise(split), {x}, {y});
  return y;
}

std::vector<TensorId> LayerWriter::linear(const Linear& linear) {
  const bool casts = narrower(linear.precision, layer_.tensors[linear.x].dtype);
  const TensorId x =
      casts ? cast(linear.name + ".cast", linear.x, linear.width_in, linear.precision) : linear.x;
  const std::vector<TensorId> outputs = product(linear, x);
  return linear.adapted && options_.adapter_rank > 0 ? adapt(linear, outputs) : outputs;
}

std::vector<TensorId> LayerWriter::product(const Linear& linear, TensorId x) {
  std::int64_t width_out = 0;
  std::vector<TensorId> writes;
  for (const Output& output : linear.outputs) {
    width_out += output.width;
    writes.push_back(activation(output.name, output.width, output_split(linear.parallel),
                                linear.written.value_or(options_.compute)));
  }
  const TensorId weight =
      parameter(linear.name + ".weight", linear.groups * linear.width_in * width_out,
                linear.precision, weight_split(linear.parallel));
  const bool quantised = weights_ == WeightState::quantised;
  layer_.tensors[weight].quantised = quantised;
  std::vector<TensorId> reads = {x, weight};
  if (linear.bias) {
    reads.push_back(parameter(linear.name + ".bias", linear.groups * width_out, options_.compute,
                              bias_split(linear.parallel)));
  }
  op({.name = linear.name,
      .kind = OpKind::matmul,
      .pass = Pass::forward,
      .shape = Matmul{rows(linear.parallel), width_out, linear.width_in, linear.groups},
      .parallel = linear.parallel,
      .precision = linear.precision,
      .reads = std::move(reads),
      .writes = writes,
      .forward = {},
      .quantised = quantised});
  return writes;
}

// The rank is narrow: of columns it is what travels between tensor ranks, so each makes it of its
// own tokens; of rows it is summed as the main product is.
std::vector<TensorId> LayerWriter::adapt(const Linear& linear,
                                         const std::vector<TensorId>& outputs) {
  const WeightState frozen = std::exchange(weights_, WeightState::trained);
  const bool columns = linear.parallel == Parallel::columns;
  const std::int64_t rank = options_.adapter_rank;
  const TensorId down = product({.name = linear.name + ".lora_a",
                                 .x = linear.x,
                                 .width_in = linear.width_in,
                                 .outputs = {{linear.name + ".lora_a", rank}},
                                 .parallel = columns ? Parallel::tokens : linear.parallel,
                                 .precision = options_.compute},
                                linear.x)[0];
  Linear up = {.name = linear.name + ".lora_b",
               .x = down,
               .width_in = rank,
               .outputs = linear.outputs,
               .parallel = columns ? Parallel::columns : Parallel::tokens,
               .precision = options_.compute};
  for (Output& output : up.outputs) output.name += ".lora_b";
  const std::vector<TensorId> added = product(up, down);
  weights_ = frozen;
  std::vector<TensorId> sums;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, width] = linear.outputs[i];
    const Split split = layer_.tensors[outputs[i]].split;
    sums.push_back(activation(name + ".adapted", width, split));
    elementwise(name + ".adapted", OpKind::residual, width, 1, pointwise(split),
                {outputs[i], added[i]}, {sums.back()});
  }
  return sums;
}

TensorId LayerWriter::norm(const std::string& name, TensorId x) {
  return norm(name, x, architecture_.hidden, architecture_.norm_bias);
}

TensorId LayerWriter::norm(const std::string& name, TensorId x, std::int64_t width, bool bias) {
  std::vector<TensorId> reads = {x,
                                 parameter(name + ".weight", width, options_.compute, Split::none)};
  if (bias) reads.push_back(parameter(name + ".bias", width, options_.compute, Split::none));
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
  elementwise(name, OpKind::dropout, width, kDropoutFlop, pointwise(split), {x}, {y, mask});
  return y;
}

Layer LayerWriter::finish(TensorId output, bool input_trained) {
  layer_.output = output;
  differentiate(layer_, input_trained);
  return std::move(layer_);
}

}  // namespace orrery

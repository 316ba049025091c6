#include "model/build_parts.h"

namespace orrery {
namespace {

// Operations for each channel and number of its state: Megatron-LM's mamba_layer_flops.
constexpr double kScanFlop = 7;

using Outputs = std::vector<LayerWriter::Output>;

std::vector<TensorId> matrix(LayerWriter& w, const std::string& name, TensorId x,
                             std::int64_t width_in, Outputs outputs, Parallel parallel, bool bias) {
  return w.linear({.name = name,
                   .x = x,
                   .width_in = width_in,
                   .outputs = std::move(outputs),
                   .parallel = parallel,
                   .bias = bias,
                   .precision = w.options().matrices,
                   .adapted = w.options().adapt_attention});
}

// Each channel along the sequence, and its activation in the same kernel.
TensorId convolution(LayerWriter& w, TensorId x, std::int64_t channels) {
  const StateSpace& s = w.architecture().state_space;
  const Precision dtype = w.options().compute;
  std::vector<TensorId> reads = {
      x, w.parameter("convolution.weight", channels * s.conv, dtype, Split::features)};
  if (s.conv_bias) {
    reads.push_back(w.parameter("convolution.bias", channels, dtype, Split::features));
  }
  const TensorId y = w.activation("convolution", channels, Split::features);
  const double flop = 2 * static_cast<double>(s.conv) + kActivationFlop;
  w.elementwise("convolution", OpKind::convolution, channels, flop, Parallel::features,
                std::move(reads), {y});
  return y;
}

TensorId scan(LayerWriter& w, std::vector<TensorId> reads) {
  const StateSpace& s = w.architecture().state_space;
  const TensorId y = w.activation("scan", s.inner, Split::features);
  w.elementwise("scan", OpKind::scan, s.inner, kScanFlop * static_cast<double>(s.state),
                Parallel::features, std::move(reads), {y});
  return y;
}

TensorId scan_parameter(LayerWriter& w, const std::string& name, std::int64_t elements) {
  return w.parameter("scan." + name, elements, w.options().compute, Split::features);
}

TensorId out_proj(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  return matrix(w, "out_proj", x, a.state_space.inner, {{"out_proj", a.hidden}}, Parallel::rows,
                a.state_space.bias)[0];
}

}  // namespace

// Algorithm 2 and section 3.4 of the paper: the time step and both projections of the state are
// made from the convolved input, the step through a low rank.
TensorId selective_scan_branch(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  const StateSpace& s = a.state_space;
  const std::vector<TensorId> in =
      matrix(w, "in_proj", x, a.hidden, {{"in_proj.x", s.inner}, {"in_proj.z", s.inner}},
             Parallel::columns, s.bias);
  const TensorId u = convolution(w, in[0], s.inner);
  const std::vector<TensorId> low =
      matrix(w, "x_proj", u, s.inner, {{"x_proj.dt", s.dt_rank}, {"x_proj.bc", 2 * s.state}},
             Parallel::rows, false);
  const TensorId dt =
      matrix(w, "dt_proj", low[0], s.dt_rank, {{"dt_proj", s.inner}}, Parallel::columns, true)[0];
  const TensorId y = scan(w, {u, dt, low[1], scan_parameter(w, "a.weight", s.inner * s.state),
                              scan_parameter(w, "d.weight", s.inner)});
  const TensorId gated = w.activation("gate", s.inner, Split::features);
  w.elementwise("gate", OpKind::activation, s.inner, kActivationFlop, Parallel::features,
                {y, in[1]}, {gated});
  return out_proj(w, gated);
}

// Section 7.1 of the paper: everything comes from one projection, and a norm after the gate.
TensorId dual_scan_branch(LayerWriter& w, TensorId x) {
  const Architecture& a = w.architecture();
  const StateSpace& s = a.state_space;
  const std::int64_t mixed = s.inner + 2 * s.groups * s.state;
  const std::vector<TensorId> in =
      matrix(w, "in_proj", x, a.hidden,
             {{"in_proj.xbc", mixed}, {"in_proj.z", s.inner}, {"in_proj.dt", s.heads}},
             Parallel::columns, s.bias);
  const TensorId u = convolution(w, in[0], mixed);
  const TensorId y =
      scan(w, {u, in[2], scan_parameter(w, "a.weight", s.heads),
               scan_parameter(w, "d.weight", s.heads), scan_parameter(w, "dt.bias", s.heads)});
  const TensorId gated = w.activation("gated_norm", s.inner, Split::features);
  w.elementwise(
      "gated_norm", OpKind::norm, s.inner, kNormFlop + kActivationFlop, Parallel::features,
      {y, in[1], w.parameter("gated_norm.weight", s.inner, w.options().compute, Split::features)},
      {gated});
  return out_proj(w, gated);
}

}  // namespace orrery

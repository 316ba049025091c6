// Layers that are described by hand. What operators pass on is in the compute precision, one row a
// token; a {flop, bytes} operator's traffic is what its author says, whatever tensors it is on.
#include "model/build_parts.h"

namespace orrery {
namespace {

Parallel parallel_of(CustomSplit split) {
  switch (split) {
    case CustomSplit::columns:
      return Parallel::columns;
    case CustomSplit::rows:
      return Parallel::rows;
    case CustomSplit::none:
      break;
  }
  return Parallel::tokens;
}

class CustomWriter {
 public:
  CustomWriter(const Architecture& a, const CustomLayer& layer, const GraphOptions& options)
      : options_(options), layer_(layer), w_(layer.name, a, options, body_weights(options)) {}

  Layer write(bool trained) {
    streams_ = {w_.input()};
    for (const CustomOp& op : layer_.ops) {
      const auto* matmul = std::get_if<CustomMatmul>(&op.what);
      streams_.push_back(matmul ? write(op, *matmul) : write(op, std::get<CustomWork>(op.what)));
    }
    return w_.finish(streams_.back(), trained);
  }

 private:
  TensorId write(const CustomOp& op, const CustomMatmul& matmul) {
    return w_.linear({.name = op.name,
                      .x = streams_[op.from[0]],
                      .width_in = matmul.in,
                      .outputs = {{op.name, matmul.out}},
                      .parallel = parallel_of(matmul.split),
                      .precision = options_.matrices})[0];
  }

  TensorId write(const CustomOp& op, const CustomWork& work) {
    const Split split = op.divided ? Split::features : Split::sequence;
    std::vector<TensorId> reads, writes = {w_.activation(op.name, op.width, split)};
    for (const std::size_t stream : op.from) reads.push_back(streams_[stream]);
    if (work.parameters > 0) {
      reads.push_back(w_.parameter(op.name + ".parameters", work.parameters, options_.compute,
                                   op.divided ? Split::features : Split::none));
    }
    if (work.kept) {
      writes.push_back(w_.activation(op.name + ".kept", *work.kept, split, Precision::int8));
    }
    w_.op({.name = op.name,
           .kind = work.matrix ? OpKind::matrix_work : OpKind::vector_work,
           .pass = Pass::forward,
           .shape = Stated{.rows = options_.micro_batch * options_.seq_len,
                           .flop = work.flop,
                           .bytes = work.bytes,
                           .backward = work.backward},
           .parallel = pointwise(split),
           .precision = work.matrix ? options_.compute : Precision::fp32,
           .reads = std::move(reads),
           .writes = writes,
           .forward = {}});
    return writes[0];
  }

  const GraphOptions& options_;
  const CustomLayer& layer_;
  LayerWriter w_;
  std::vector<TensorId> streams_;  // the layer's input, then what each operator writes
};

}  // namespace

std::vector<Run> custom_runs(OpGraph& graph, const Architecture& a, const GraphOptions& options) {
  std::vector<Run> runs;
  for (const CustomLayer& layer : a.custom.layers) {
    const LayerId id =
        graph.layers.push_back(CustomWriter(a, layer, options).write(a.custom.trained));
    runs.push_back({id, layer.count});
  }
  return runs;
}

}  // namespace orrery

// The second reader of Programs: runs one rank with real numbers, in program order.
//
// A toy network keeps the structure of a transformer and gives its kernels simple, exactly
// differentiable meanings: norm(x) = x w, rotary(q, k) = (-q, -k), attention(q, k, v) = q k + v and
// activation(gate, up) = gate up element by element, loss = half the squared logits. Matrix
// products are real ones.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "plan/program.h"
#include "plan/toy_network.h"

namespace orrery {

// Where a rank sits and what it reads from outside.
struct ToyRank {
  std::int64_t tensor, data, tp, dp;
  bool sequence_parallel;
  // Token ids of the n-th micro-batch of a data rank.
  std::function<std::vector<std::int64_t>(std::int64_t data, std::int64_t n)> tokens;
};

class ToyExecutor {
 public:
  ToyExecutor(const Program& program, ClassId id, ToyRank rank, ToyNetwork& network)
      : program_(program), id_(id), ranks_(program.classes[id]), me_(rank), network_(network) {}

  // Weights of this rank before the step, one flat array a layer.
  void set_weights(const std::string& buffer, std::vector<std::vector<double>> layers) {
    for (const BufferId id : ranks_.buffers.ids()) {
      if (ranks_.buffers[id].name == buffer && !ranks_.buffers[id].whole) {
        state_[id] = std::move(layers);
        return;
      }
    }
    throw std::runtime_error("no buffer " + buffer);
  }

  void run() { run(ranks_.step); }

  const std::vector<std::vector<double>>& state(const std::string& buffer) const {
    for (const auto& [id, layers] : state_) {
      if (ranks_.buffers[id].name == buffer) return layers;
    }
    throw std::runtime_error("no buffer " + buffer);
  }
  double loss = 0;  // of this rank's part of the vocabulary
  double flop = 0;  // counted in the products
  double sent = 0;  // bytes

 private:
  struct Instance {
    bool written = false;
    Matrix m;
  };
  struct OpenFrame {
    std::int64_t micro_batch;
    bool reused;
    std::map<BufferId, std::vector<Instance>> buffers;
  };

  void run(const std::vector<Instruction>& body) {
    for (const Instruction& instruction : body) {
      std::visit([&](const auto& what) { run(what); }, instruction.what);
    }
  }

  void run(const Loop& loop) {
    const std::int64_t outer = layer_;
    for (std::int64_t i = 0; i < loop.count; ++i) {
      if (loop.over_layers) {
        layer_ = loop.first + (loop.order == Order::ascending ? i : loop.count - 1 - i);
      }
      run(loop.body);
    }
    layer_ = outer;
  }

  void run(const Call& call) {
    std::deque<OpenFrame>& frames = frames_[call.chunk];
    if (call.frame == Frame::open) frames.push_back({opened_[call.chunk]++, false, {}});
    frame_ = &frame_of(call, frames);
    run(ranks_.blocks[call.block].body);
    frame_ = nullptr;
    if (call.frame != Frame::close) return;
    for (const auto& [id, stack] : frames.front().buffers) {
      if (!stack.empty()) throw std::runtime_error("left over: " + ranks_.buffers[id].name);
    }
    frames.pop_front();
  }

  static OpenFrame& frame_of(const Call& call, std::deque<OpenFrame>& frames) {
    if (call.frame == Frame::open) return frames.back();
    if (call.frame == Frame::close) return frames.front();
    for (OpenFrame& frame : frames) {
      if (!std::exchange(frame.reused, true)) return frame;
    }
    throw std::runtime_error("no frame to work in");
  }

  // --- buffers ----------------------------------------------------------------------------------
  bool persistent(BufferId id) const {
    const MemoryTerm term = ranks_.buffers[id].term;
    return term == MemoryTerm::weights || term == MemoryTerm::gradients ||
           term == MemoryTerm::optimizer;
  }
  BufferId whole(BufferId id) const {
    return ranks_.buffers[id].whole ? ranks_.buffers[id].whole : id;
  }
  std::int64_t elements(BufferId id) const {
    const Buffer& buffer = ranks_.buffers[id];
    return std::llround(buffer.size / element_size(buffer.dtype));
  }
  std::int64_t offset(BufferId part) const {
    std::int64_t sum = 0;
    for (const BufferId id : ranks_.buffers.ids()) {
      if (id == part) break;
      if (ranks_.buffers[id].whole == whole(part)) sum += elements(id);
    }
    return sum;
  }

  void run(const Alloc& alloc) {
    if (persistent(alloc.buffer)) {
      auto& layers = state_[alloc.buffer];
      if (layers.empty()) layers.assign(alloc.count, std::vector<double>(elements(alloc.buffer)));
      return;
    }
    auto& stack = frame_->buffers[alloc.buffer];
    stack.resize(stack.size() + alloc.count);
  }
  void run(const Free& free) {
    auto& stack = frame_->buffers[free.buffer];
    stack.resize(stack.size() - free.count);
  }

  void run(const Move& move) {
    auto& from = frame_->buffers[move.from];
    frame_->buffers[move.to].push_back(std::move(from.back()));
    from.pop_back();
  }

  // The flat array that a buffer of parameters or of their gradients lies in, read or written.
  std::vector<double>& flat(BufferId id) {
    const BufferId all = whole(id);
    if (persistent(all)) return state_.at(all).at(layer_);
    Instance& top = frame_->buffers[all].back();
    if (!top.written) top = {true, Matrix::zero(1, elements(all))};
    return top.m.v;
  }

  Matrix parameter(BufferId id, std::int64_t cols) {
    const std::vector<double>& all = flat(id);
    const auto from = all.begin() + offset(id);
    return {elements(id) / cols, cols, std::vector<double>(from, from + elements(id))};
  }
  void add_gradient(BufferId id, const Matrix& gradient) {
    if (static_cast<std::int64_t>(gradient.v.size()) != elements(id)) {
      throw std::runtime_error("wrong gradient of " + ranks_.buffers[id].name);
    }
    std::vector<double>& all = flat(id);
    for (std::size_t i = 0; i < gradient.v.size(); ++i) all[offset(id) + i] += gradient.v[i];
  }

  const Matrix& read(BufferId id) {
    const auto& stack = frame_->buffers[id];
    for (auto it = stack.rbegin(); it != stack.rend(); ++it) {
      if (it->written) return it->m;
    }
    throw std::runtime_error("read before written: " + ranks_.buffers[id].name);
  }
  void write(BufferId id, Matrix m) {
    if (static_cast<std::int64_t>(m.v.size()) != elements(id)) {
      throw std::runtime_error("wrong size of " + ranks_.buffers[id].name);
    }
    frame_->buffers[id].back() = {true, std::move(m)};
  }

  // --- messages ---------------------------------------------------------------------------------
  std::int64_t rank_of(ClassId id) const {
    return (static_cast<std::int64_t>(id.index()) * me_.dp + me_.data) * me_.tp + me_.tensor;
  }
  void run(const Send& send) {
    const Matrix whole = read(send.buffer);
    const std::int64_t rows = whole.rows / me_.tp;
    const Matrix m = send.slice ? whole.some_rows(me_.tensor * rows, rows) : whole;
    if (send.to != id_) {
      sent +=
          static_cast<double>(m.v.size()) * element_size(ranks_.buffers[send.buffer].dtype).value();
    }
    network_.send({rank_of(id_), rank_of(send.to), send.channel}, m);
  }
  void run(const Recv& recv) {
    write(recv.buffer, network_.receive({rank_of(recv.from), rank_of(id_), recv.channel}));
  }

  void run(const Collective& collective) {
    layer_ += collective.layer_shift;
    exchange(collective);
    layer_ -= collective.layer_shift;
  }

  void exchange(const Collective& collective) {
    const Comm& comm = program_.comms[collective.comm];
    const BufferId source = collective.source ? collective.source : collective.buffer;
    if (comm.kind == GroupKind::mirror) return;  // the test sums the copies
    const bool tensor = comm.kind == GroupKind::tensor;
    if (tensor && ranks_.buffers[source].name == "cross-entropy statistics") return;
    const bool data_flat = !tensor;
    const Matrix mine =
        data_flat ? Matrix{1, static_cast<std::int64_t>(flat(source).size()), flat(source)}
                  : read(source);
    const std::int64_t me = tensor ? me_.tensor : me_.data;
    const std::int64_t other = tensor ? me_.data : me_.tensor;
    const std::string group = std::string(name_of(comm.kind)) + " " + std::to_string(id_.index()) +
                              " " + std::to_string(other);
    const std::vector<Matrix> all =
        network_.meet(group, meetings_[group]++, comm.group.ranks, me, mine);
    const Matrix result = combined(comm.op, all, me, data_flat);
    if (!data_flat) return write(collective.buffer, result);
    std::vector<double>& target = flat(collective.buffer);
    const bool accumulates = collective.source && comm.op == CollectiveOp::reduce_scatter;
    for (std::size_t i = 0; i < target.size(); ++i) {
      target[i] = result.v.at(i) + (accumulates ? target[i] : 0);
    }
  }

  // Tokens are gathered and scattered by rows, flat arrays by their one row's columns.
  static Matrix combined(CollectiveOp op, const std::vector<Matrix>& all, std::int64_t me,
                         bool flat) {
    const auto count = static_cast<std::int64_t>(all.size());
    if (op == CollectiveOp::all_gather) {
      Matrix joined = {0, all[0].cols, {}};
      for (const Matrix& part : all) {
        joined.rows += part.rows;
        joined.v.insert(joined.v.end(), part.v.begin(), part.v.end());
      }
      return joined;
    }
    Matrix sum = all[0];
    for (std::int64_t i = 1; i < count; ++i) sum += all[i];
    if (op == CollectiveOp::all_reduce) return sum;
    if (flat) return sum.columns(me * sum.cols / count, sum.cols / count);
    return sum.some_rows(me * sum.rows / count, sum.rows / count);
  }

  // --- kernels ----------------------------------------------------------------------------------
  void run(const Copy&) {}
  void run(const Update&) {}

  void run(const Compute& compute) {
    const Kernel& kernel = program_.kernels[compute.kernel];
    switch (kernel.kind) {
      case OpKind::matmul:
        return matmul(kernel, compute);
      case OpKind::norm:
        return norm(kernel, compute);
      case OpKind::embedding:
        return embedding(kernel, compute);
      case OpKind::rotary:
        return rotary(compute);
      case OpKind::attention:
        return attention(kernel, compute);
      case OpKind::activation:
        return activation(kernel, compute);
      case OpKind::residual:
        return write(compute.writes[0], read(compute.reads[0]) + read(compute.reads[1]));
      case OpKind::cross_entropy:
        return cross_entropy(kernel, compute);
      default:
        throw std::runtime_error("no toy of " + kernel.name);
    }
  }

  void matmul(const Kernel& kernel, const Compute& compute) {
    const Matmul& shape = std::get<Matmul>(kernel.shape);
    if (kernel.pass == Pass::forward) {
      const Matrix y = product(read(compute.reads[0]), parameter(compute.reads[1], shape.n), flop);
      return write_beside(compute.writes, y);
    }
    const bool data = kernel.pass == Pass::data_gradient;
    std::vector<Matrix> parts;
    for (std::size_t i = data ? 0 : 1; i < compute.reads.size() - (data ? 1 : 0); ++i) {
      parts.push_back(read(compute.reads[i]));
    }
    const Matrix dy = beside(parts);
    if (data) {
      const Matrix w = parameter(compute.reads.back(), dy.cols);
      return write(compute.writes[0], product(dy, transposed(w), flop));
    }
    add_gradient(compute.writes[0], product(transposed(read(compute.reads[0])), dy, flop));
  }

  void write_beside(const std::vector<BufferId>& writes, const Matrix& y) {
    std::int64_t from = 0;
    for (const BufferId id : writes) {
      const std::int64_t cols = elements(id) / y.rows;
      write(id, y.columns(from, cols));
      from += cols;
    }
  }

  static Matrix scaled(const Matrix& x, const Matrix& row) {
    return Matrix::filled(x.rows, x.cols,
                          [&](auto i, auto j) { return x.at(i, j) * row.at(0, j); });
  }

  void norm(const Kernel& kernel, const Compute& compute) {
    const Matrix x = read(compute.reads[0]);
    if (kernel.pass == Pass::forward) {
      return write(compute.writes[0], scaled(x, parameter(compute.reads[1], x.cols)));
    }
    const Matrix dy = read(compute.reads[1]);
    const Matrix w = parameter(compute.reads[2], x.cols);
    Matrix dw = Matrix::zero(1, x.cols);
    for (std::int64_t i = 0; i < x.rows; ++i) dw += times(x, dy).some_rows(i, 1);
    write(compute.writes[0], scaled(dy, w));
    add_gradient(compute.writes[1], dw);
  }

  // The table is divided by rows: tokens of other ranks are zero here.
  void embedding(const Kernel& kernel, const Compute& compute) {
    const std::int64_t width = std::get<Elementwise>(kernel.shape).width;
    const bool forward = kernel.pass == Pass::forward;
    const BufferId table = forward ? compute.reads[0] : compute.writes[0];
    const std::int64_t rows = elements(table) / width, first = me_.tensor * rows;
    const std::vector<std::int64_t> tokens = me_.tokens(me_.data, frame_->micro_batch);
    const auto here = [&](std::int64_t i) {
      return tokens[i] >= first && tokens[i] < first + rows;
    };
    if (forward) {
      const Matrix e = parameter(table, width);
      return write(
          compute.writes[0],
          Matrix::filled(static_cast<std::int64_t>(tokens.size()), width,
                         [&](auto i, auto j) { return here(i) ? e.at(tokens[i] - first, j) : 0; }));
    }
    const Matrix dy = read(compute.reads[0]);
    Matrix de = Matrix::zero(rows, width);
    for (std::int64_t i = 0; i < dy.rows; ++i) {
      for (std::int64_t j = 0; here(i) && j < width; ++j)
        de.at(tokens[i] - first, j) += dy.at(i, j);
    }
    add_gradient(table, de);
  }

  void rotary(const Compute& compute) {
    for (const std::size_t i : {0, 1}) {
      const Matrix& x = read(compute.reads[i]);
      write(compute.writes[i],
            Matrix::filled(x.rows, x.cols, [&](auto r, auto c) { return -x.at(r, c); }));
    }
  }

  void attention(const Kernel& kernel, const Compute& compute) {
    const Matrix q = read(compute.reads[0]), k = read(compute.reads[1]);
    if (kernel.pass == Pass::forward) {
      write(compute.writes[0], times(q, k) + read(compute.reads[2]));
      return write(compute.writes[1], Matrix::zero(q.rows, elements(compute.writes[1]) / q.rows));
    }
    const Matrix dy = read(compute.reads.back());
    write(compute.writes[0], times(dy, k));
    write(compute.writes[1], times(dy, q));
    write(compute.writes[2], dy);
  }

  void activation(const Kernel& kernel, const Compute& compute) {
    const Matrix x = read(compute.reads[0]);
    const Matrix gate = x.columns(0, x.cols / 2), up = x.columns(x.cols / 2, x.cols / 2);
    if (kernel.pass == Pass::forward) return write(compute.writes[0], times(gate, up));
    const Matrix dy = read(compute.reads[1]);
    write(compute.writes[0], beside({times(dy, up), times(dy, gate)}));
  }

  void cross_entropy(const Kernel& kernel, const Compute& compute) {
    const Matrix logits = read(compute.reads[0]);
    if (kernel.pass != Pass::forward) return write(compute.writes[0], logits);
    Matrix each = Matrix::zero(logits.rows, 1);
    for (std::int64_t i = 0; i < logits.rows; ++i) {
      for (std::int64_t j = 0; j < logits.cols; ++j) {
        each.at(i, 0) += logits.at(i, j) * logits.at(i, j) / 2;
      }
      loss += each.at(i, 0);
    }
    write(compute.writes[0], each);
  }

  const Program& program_;
  ClassId id_;
  const RankClass& ranks_;
  ToyRank me_;
  ToyNetwork& network_;
  std::map<BufferId, std::vector<std::vector<double>>> state_;  // by buffer and layer
  std::map<std::int32_t, std::deque<OpenFrame>> frames_;        // by chunk
  std::map<std::int32_t, std::int64_t> opened_;
  std::map<std::string, std::int64_t> meetings_;
  OpenFrame* frame_ = nullptr;
  std::int64_t layer_ = 0;
};

}  // namespace orrery

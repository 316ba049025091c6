#include <algorithm>

#include "core/error.h"
#include "plan/lowering.h"

namespace orrery {
namespace {

bool is_attention(const Op& op) {
  return op.kind == OpKind::attention || op.kind == OpKind::attention_scores ||
         op.kind == OpKind::attention_values;
}

bool is_gradient(const Op& op) { return op.pass != Pass::forward; }

// Writes one pass of one layer: its operators in order, each between the allocations and the
// collectives that it needs and the releases that it allows.
class PassWriter {
 public:
  PassWriter(Stage& stage, const LayerPass& pass, Body& body)
      : stage_(stage),
        lowering_(stage.lowering),
        strategy_(stage.lowering.strategy),
        pass_(pass),
        layer_(stage.lowering.graph.layers[pass.layer]),
        body_(body),
        alive_(pass.entering) {}

  void write() {
    find_last_uses();
    gather_weights();
    if (pass_.reduces_left) reduce_bucket(stage_, pass_.layer, body_, 1);
    const std::size_t from = body_.size();
    for (const TensorId tensor : pass_.entering) {
      if (!last_use_.count(tensor)) release(tensor);
    }
    for (turn_ = 0; turn_ < pass_.turns.size(); ++turn_) write_turn();
    body_.mark_computed();
    if (stage_.data.gathers_each_pass()) body_.mark_started(from);
    release_weights();
    reduce_gradients();
  }

 private:
  const Turn& turn() const { return pass_.turns[turn_]; }
  const Op& op() const { return layer_.ops[turn().op]; }
  const Tensor& tensor(TensorId id) const { return layer_.tensors[id]; }
  bool parameter(TensorId id) const {
    return tensor(id).role == TensorRole::parameter ||
           tensor(id).role == TensorRole::parameter_gradient;
  }

  void find_last_uses() {
    for (std::size_t i = 0; i < pass_.turns.size(); ++i) {
      const Op& used = layer_.ops[pass_.turns[i].op];
      for (const auto& ids : {used.reads, used.writes}) {
        for (const TensorId id : ids) {
          if (parameter(id)) continue;
          last_use_[id] = i;
          const std::pair key = {id, is_gradient(used)};
          if (lowering_.local.spans_tokens(used, id, layer_)) last_spanning_use_[key] = i;
        }
      }
      if (is_attention(used)) last_attention_[is_gradient(used)] = i;
    }
    if (pass_.backward) hold_logits();
  }

  void write_turn() {
    open_context();
    Compute compute = {lowering_.kernel(layer_, turn()), {}, {}};
    for (const TensorId id : op().reads) compute.reads.push_back(source(id));
    std::vector<TensorId> sums;  // to be summed over the tensor ranks
    for (const TensorId id : op().writes) {
      compute.writes.push_back(destination(id));
      if (lowering_.local.spans_tokens(op(), id, layer_)) sums.push_back(id);
    }
    const BufferId extra = begin_extra();
    body_.compute(std::move(compute));
    for (const TensorId id : sums) sum_over_tensor_ranks(id);
    end_extra(extra);
    close_context();
    release_unused();
  }

  // --- operands --------------------------------------------------------------------------------
  BufferId buffer(TensorId id) {
    if (id == layer_.input || id == layer_.output) return stage_.buffers.hidden();
    if (id == layer_.input_gradient || id == layer_.output_gradient) {
      return stage_.buffers.hidden_gradient();
    }
    const auto kept = pass_.kept.find(id);
    return stage_.buffers.of(pass_.layer, id, kept != pass_.kept.end() && kept->second == 1);
  }

  BufferId source(TensorId id) {
    if (parameter(id)) return stage_.state.weight(pass_.layer, id);
    if (!strategy_.sequence_parallel || !lowering_.local.spans_tokens(op(), id, layer_)) {
      return buffer(id);
    }
    const std::pair key = {id, is_gradient(op())};
    const BufferId whole = whole_tokens(id, "gathered");
    if (gathered_.insert(key).second) {
      body_.alloc(whole);
      body_.blocking(tensor_comm(CollectiveOp::all_gather, id), whole, buffer(id));
    }
    return whole;
  }

  // None for what is kept from the forward pass and so need not be written again.
  BufferId destination(TensorId id) {
    if (tensor(id).role == TensorRole::parameter_gradient) {
      allocate_bucket();
      return stage_.state.gradient(pass_.layer, id);
    }
    if (alive_.count(id)) return {};
    if (!works_in_place(id)) allocate(id);
    alive_.insert(id);
    if (!strategy_.sequence_parallel || !lowering_.local.spans_tokens(op(), id, layer_)) {
      return buffer(id);
    }
    const BufferId partial = whole_tokens(id, "partial");
    body_.alloc(partial);
    return partial;
  }

  // Takes over the buffer of a tensor that lies in the same one and is used for the last time.
  bool works_in_place(TensorId id) {
    for (const TensorId other : alive_) {
      if (pass_.leaving.count(other) || last_use_[other] != turn_) continue;
      if (buffer(other) != buffer(id)) continue;
      alive_.erase(other);
      return true;
    }
    return false;
  }

  void allocate(TensorId id) {
    body_.alloc(buffer(id));
    if (!pass_.backward && is_part_kept(id)) body_.alloc(kept_part(id));
  }

  void release(TensorId id) {
    body_.free(buffer(id));
    if (pass_.backward && is_part_kept(id)) body_.free(kept_part(id));
    alive_.erase(id);
  }

  void release_unused() {
    for (auto it = last_spanning_use_.begin(); it != last_spanning_use_.end(); ++it) {
      if (it->second == turn_ && gathered_.erase(it->first)) {
        body_.free(whole_tokens(it->first.first, "gathered"));
      }
    }
    std::vector<TensorId> done;
    for (const TensorId id : alive_) {
      const bool copied = pass_.backward && is_logits(id) && pass_.kept.count(id) &&
                          !lowering_.recipe.fused_cross_entropy;
      if (copied && last_use_[id] == turn_) body_.free(loss_copy(id));
      if (last_use_[id] == turn_ && !pass_.leaving.count(id)) done.push_back(id);
    }
    for (const TensorId id : done) release(id);
  }

  bool is_part_kept(TensorId id) const {
    const auto kept = pass_.kept.find(id);
    return kept != pass_.kept.end() && kept->second < 1;
  }

  BufferId kept_part(TensorId id) {
    return stage_.buffers.named(
        layer_.name + " " + tensor(id).name + " (kept part)", MemoryTerm::activations,
        lowering_.local.bytes(tensor(id)) * pass_.kept.at(id), tensor(id).dtype);
  }

  BufferId whole_tokens(TensorId id, const char* what) {
    return stage_.buffers.named(layer_.name + " " + tensor(id).name + " (" + what + ")",
                                MemoryTerm::workspace, lowering_.local.gathered_bytes(tensor(id)),
                                tensor(id).dtype);
  }

  // --- tensor and context parallelism ----------------------------------------------------------
  CommId tensor_comm(CollectiveOp collective, TensorId id) {
    return lowering_.comm(collective, GroupKind::tensor, lowering_.local.gathered_bytes(tensor(id)),
                          tensor(id).dtype);
  }

  void sum_over_tensor_ranks(TensorId id) {
    if (!strategy_.sequence_parallel) {
      return body_.blocking(tensor_comm(CollectiveOp::all_reduce, id), buffer(id));
    }
    const BufferId partial = whole_tokens(id, "partial");
    body_.blocking(tensor_comm(CollectiveOp::reduce_scatter, id), buffer(id), partial);
    body_.free(partial);
  }

  const Attention* attention_shape() const {
    return is_attention(op()) ? std::get_if<Attention>(&op().shape) : nullptr;
  }

  BufferId keys_and_values(const char* what) {
    const Bytes size = lowering_.local.keys_and_values(*attention_shape(), op().precision);
    return stage_.buffers.named(layer_.name + " keys and values " + what, MemoryTerm::workspace,
                                size, op().precision);
  }

  void on_context(CollectiveOp collective, BufferId buffer) {
    body_.blocking(lowering_.comm(collective, GroupKind::context, stage_.ranks.buffers[buffer].size,
                                  op().precision),
                   buffer);
  }

  // Keys and values of all context ranks, from the first operator of attention to the last.
  void open_context() {
    if (strategy_.cp == 1 || !attention_shape() || in_context_) return;
    in_context_ = true;
    const BufferId all = keys_and_values("(gathered)");
    body_.alloc(all);
    on_context(CollectiveOp::all_gather, all);
    if (is_gradient(op())) body_.alloc(keys_and_values("(gradient)"));
  }

  void close_context() {
    if (!in_context_ || last_attention_[is_gradient(op())] != turn_) return;
    in_context_ = false;
    if (is_gradient(op())) {
      const BufferId gradient = keys_and_values("(gradient)");
      on_context(CollectiveOp::reduce_scatter, gradient);
      body_.free(gradient);
    }
    body_.free(keys_and_values("(gathered)"));
  }

  // --- the loss --------------------------------------------------------------------------------
  bool is_logits(TensorId id) const {
    return pass_.layer == lowering_.graph.head && !parameter(id) &&
           tensor(id).split == Split::features;
  }

  // Logits and their gradient stay until the head's gradients are done: Megatron's last stage holds
  // 4 bytes a logit beside the gradient of its output matrix.
  void hold_logits() {
    std::size_t last = 0;
    for (const auto& [id, use] : last_use_) {
      if (is_logits(id)) last = std::max(last, use);
    }
    for (auto& [id, use] : last_use_) {
      if (is_logits(id)) use = last;
    }
  }

  // Unfused cross-entropy holds 6 more bytes a logit as long as the logits.
  BufferId loss_copy(TensorId logits) {
    return stage_.buffers.named("cross-entropy copies", MemoryTerm::logits,
                                Bytes(6 * lowering_.local.elements(tensor(logits))),
                                Precision::fp32);
  }

  bool writes_output_matrix() const {
    return pass_.layer == lowering_.graph.head && op().kind == OpKind::matmul &&
           op().pass == Pass::weight_gradient && lowering_.recipe.head_gradient_bytes > 0;
  }

  BufferId head_gradient() {
    const Tensor& matrix = tensor(output_matrix(layer_));
    return stage_.buffers.named(
        "head gradient before accumulation", MemoryTerm::workspace,
        Bytes(lowering_.local.elements(matrix) * lowering_.recipe.head_gradient_bytes),
        Precision::fp32);
  }

  // What a kernel needs beside its operands; none or a buffer to free after it.
  BufferId begin_extra() {
    const bool loss = op().kind == OpKind::cross_entropy && !is_gradient(op());
    if (loss && !lowering_.recipe.fused_cross_entropy) body_.alloc(loss_copy(op().reads[0]));
    if (!writes_output_matrix()) return {};
    body_.alloc(head_gradient());
    return head_gradient();
  }

  void end_extra(BufferId extra) {
    if (extra) body_.free(extra);
    if (op().kind == OpKind::cross_entropy && !is_gradient(op())) reduce_statistics();
  }

  // Largest logit, target's logit and sum of exponentials of each token (Megatron's
  // vocab_parallel_cross_entropy), 4 bytes each.
  void reduce_statistics() {
    if (strategy_.tp == 1) return;
    const double tokens =
        static_cast<double>(lowering_.graph.tokens()) / static_cast<double>(strategy_.cp);
    const CommId comm = lowering_.comm(CollectiveOp::all_reduce, GroupKind::tensor,
                                       Bytes(4 * tokens), Precision::fp32);
    const BufferId statistics = stage_.buffers.named(
        "cross-entropy statistics", MemoryTerm::workspace, Bytes(4 * tokens), Precision::fp32);
    body_.alloc(statistics);
    for (int i = 0; i < 3; ++i) body_.blocking(comm, statistics);
    body_.free(statistics);
  }

  // --- data parallelism ------------------------------------------------------------------------
  void gather_weights() {
    if (!pass_.gathers_weights) return;
    const bool each_pass = stage_.data.gathers_each_pass();
    const Event after = !lowering_.recipe.overlap_data ? Event::computed
                        : each_pass                    ? Event::started
                                                       : Event::updated;
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) {
      if (!each_pass && state->layer != pass_.layer) continue;  // gathered already
      if (each_pass) body_.alloc(state->gathered);
      stage_.data.gather(lowering_, body_, state->parameters,
                         state->gathered ? state->gathered : state->weights,
                         state->gathered ? state->weights : BufferId(), after);
    }
    body_.wait_for(Event::gathered);
  }

  void release_weights() {
    const bool stays = !pass_.backward && !lowering_.recipe.reshard_after_forward;
    if (!stage_.data.gathers_each_pass() || stays) return;
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) body_.free(state->gathered);
  }

  void allocate_bucket() {
    if (std::exchange(bucket_, true) || !stage_.data.reduces_each_backward()) return;
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) body_.alloc(state->bucket);
  }

  void reduce_gradients() {
    if (pass_.leaves_reduction) return;
    if (pass_.backward && stage_.data.reduces_each_backward()) {
      reduce_bucket(stage_, pass_.layer, body_);
    } else if (pass_.reduces_gradients) {
      for (const LayerState* state : stage_.state.used_by(pass_.layer)) {
        if (state->layer != pass_.layer) continue;  // reduced once, after its own pass
        stage_.data.reduce(lowering_, body_, state->parameters, state->gradients, {});
      }
    } else {
      return;
    }
    if (!lowering_.recipe.overlap_data) body_.wait_for(Event::gradients);
  }

  Stage& stage_;
  Lowering& lowering_;
  const Strategy& strategy_;
  const LayerPass& pass_;
  const Layer& layer_;
  Body& body_;
  std::set<TensorId> alive_;
  std::map<TensorId, std::size_t> last_use_;
  // Forward operators run again and backward operators gather separately.
  using Spanning = std::pair<TensorId, bool>;
  std::map<Spanning, std::size_t> last_spanning_use_;
  std::set<Spanning> gathered_;
  std::map<bool, std::size_t> last_attention_;
  std::size_t turn_ = 0;
  bool in_context_ = false;
  bool bucket_ = false;
};

}  // namespace

void write_pass(Stage& stage, const LayerPass& pass, Body& body) {
  PassWriter(stage, pass, body).write();
}

void reduce_bucket(Stage& stage, LayerId layer, Body& body, std::int64_t layer_shift) {
  for (const LayerState* state : stage.state.used_by(layer)) {
    stage.data.reduce(stage.lowering, body, state->parameters, state->gradients, state->bucket,
                      layer_shift);
    body.free(state->bucket);
  }
}

}  // namespace orrery

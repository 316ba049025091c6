#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "plan/lowering.h"

namespace orrery {
namespace {

bool is_attention(const Op& op) {
  return op.kind == OpKind::attention || op.kind == OpKind::attention_scores ||
         op.kind == OpKind::attention_values;
}

bool is_gradient(const Op& op) { return op.pass != Pass::forward; }

// Copies of tokens on their way to the experts, or their gradients on the same way back.
bool leaves_for_experts(const Op& op) {
  return op.kind == (is_gradient(op) ? OpKind::combine : OpKind::dispatch);
}
bool returns_from_experts(const Op& op) {
  return op.kind == (is_gradient(op) ? OpKind::dispatch : OpKind::combine);
}

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
    if (pass_.left.kind) reduce_bucket(stage_, pass_.left, body_);
    const std::size_t from = body_.size();
    // The gradient that enters waits from the start, so that the one that leaves takes its place.
    if (holds(layer_.output_gradient)) hold(layer_.output_gradient);
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
    if (pass_.backward()) hold_logits();
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
    const BufferId travelling = begin_travel(compute);
    body_.compute(std::move(compute));
    end_travel(travelling);
    for (const TensorId id : sums) sum_over_tensor_ranks(id);
    end_extra(extra);
    close_context();
    release_unused();
  }

  // --- operands --------------------------------------------------------------------------------
  BufferId buffer(TensorId id) {
    const bool waits = pass_.step == StepPass::weight_gradient || waiting_.count(id) > 0;
    return waits ? stage_.buffers.held(first_buffer(id)) : first_buffer(id);
  }

  BufferId first_buffer(TensorId id) {
    StageBuffers& buffers = stage_.buffers;
    if (id == layer_.input) return buffers.passing(layer_.takes, tensor(id));
    if (id == layer_.output) return buffers.passing(layer_.gives, tensor(id));
    if (id == layer_.input_gradient) return buffers.passing_gradient(layer_.takes, tensor(id));
    if (id == layer_.output_gradient) return buffers.passing_gradient(layer_.gives, tensor(id));
    const auto kept = pass_.kept.find(id);
    return buffers.of(pass_.layer, id, kept != pass_.kept.end() && kept->second == 1);
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
      if (pass_.leaving.count(other) || holds(other) || last_use_[other] != turn_) continue;
      if (buffer(other) != buffer(id)) continue;
      alive_.erase(other);
      return true;
    }
    return false;
  }

  void allocate(TensorId id) {
    body_.alloc(buffer(id));
    if (!pass_.backward() && is_part_kept(id)) body_.alloc(kept_part(id));
  }

  void release(TensorId id) {
    if (!holds(id)) {
      body_.free(buffer(id));
    } else if (!waiting_.count(id)) {
      hold(id);
    }
    const bool whole_or_input = pass_.backward() && pass_.step != StepPass::weight_gradient;
    if (whole_or_input && is_part_kept(id)) body_.free(kept_part(id));
    alive_.erase(id);
  }

  // Whether the weights' gradients, written later, still need it.
  bool holds(TensorId id) const {
    return pass_.step == StepPass::input_gradient && pass_.held.count(id) > 0;
  }

  void hold(TensorId id) {
    body_.move(first_buffer(id), stage_.buffers.held(first_buffer(id)));
    waiting_.insert(id);
  }

  void release_unused() {
    for (auto it = last_spanning_use_.begin(); it != last_spanning_use_.end(); ++it) {
      if (it->second == turn_ && gathered_.erase(it->first)) {
        body_.free(whole_tokens(it->first.first, "gathered"));
      }
    }
    std::vector<TensorId> done;
    for (const TensorId id : alive_) {
      const bool copied =
          pass_.backward() && is_logits(id) && pass_.kept.count(id) && keeps_loss_copies();
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

  // --- experts ---------------------------------------------------------------------------------
  // A token's copies travel between all ranks of a group of experts; of those that divide one
  // expert, each needs the copies of all. They lie permuted in a buffer of their own on the way.
  bool travels() const { return strategy_.ep > 1 || strategy_.etp > 1; }

  // The copies, hidden wide, that the experts take or give.
  TensorId copies() const {
    const std::vector<TensorId>& ids = leaves_for_experts(op()) ? op().writes : op().reads;
    const auto found = std::find_if(ids.begin(), ids.end(),
                                    [&](TensorId id) { return tensor(id).split == Split::routed; });
    return found == ids.end() ? TensorId() : *found;
  }

  BufferId permuted(TensorId id) {
    const Bytes own = lowering_.local.bytes(tensor(id)) / static_cast<double>(strategy_.etp);
    return stage_.buffers.named(layer_.name + " copies (permuted)", MemoryTerm::workspace, own,
                                tensor(id).dtype);
  }

  // Before the kernel: the buffer through which copies travel, or none.
  BufferId begin_travel(Compute& compute) {
    const TensorId id = travels() && (leaves_for_experts(op()) || returns_from_experts(op()))
                            ? copies()
                            : TensorId();
    if (id.is_none()) return {};
    const BufferId own = permuted(id);
    body_.alloc(own);
    const BufferId at_experts = buffer(id);
    std::vector<BufferId>& operands = leaves_for_experts(op()) ? compute.writes : compute.reads;
    std::replace(operands.begin(), operands.end(), at_experts, own);
    if (returns_from_experts(op())) {
      exchange(CollectiveOp::reduce_scatter, GroupKind::expert_tensor, id, at_experts, at_experts);
      exchange(CollectiveOp::all_to_all, GroupKind::expert, id, own, at_experts);
    }
    return own;
  }

  void end_travel(BufferId own) {
    if (!own) return;
    if (leaves_for_experts(op())) {
      const TensorId id = copies();
      exchange(CollectiveOp::all_to_all, GroupKind::expert, id, buffer(id), own);
      exchange(CollectiveOp::all_gather, GroupKind::expert_tensor, id, buffer(id), buffer(id));
    }
    body_.free(own);
  }

  void exchange(CollectiveOp collective, GroupKind group, TensorId id, BufferId to, BufferId from) {
    if (group_of(group, strategy_).ranks == 1) return;
    const bool whole = group == GroupKind::expert_tensor;
    const Bytes size =
        lowering_.local.bytes(tensor(id)) / (whole ? 1.0 : static_cast<double>(strategy_.etp));
    const std::int64_t copies = whole ? 1 : copies_of_a_token(id);
    body_.blocking(lowering_.comm(collective, group, size, tensor(id).dtype, copies), to,
                   to == from ? BufferId() : from);
  }

  std::int64_t copies_of_a_token(TensorId copies) const {
    const double tokens = static_cast<double>(lowering_.graph.tokens() * lowering_.graph.hidden);
    return std::max<std::int64_t>(
        1, std::llround(static_cast<double>(tensor(copies).elements) / tokens));
  }

  // --- context parallelism ---------------------------------------------------------------------
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

  // From the first operator of attention to the last.
  void open_context() {
    if (strategy_.cp == 1 || !attention_shape() || in_context_) return;
    in_context_ = true;
    switch (strategy_.context_kind) {
      case ContextKind::all_gather:
        return gather_keys();
      case ContextKind::ring:
        return pass_keys_on();
      case ContextKind::ulysses:
        // Queries, keys and values to heads; in the backward pass the output's gradient too.
        return exchange_heads(is_gradient(op()) ? 1 : 0, 1);
    }
  }

  void close_context() {
    if (!in_context_ || last_attention_[is_gradient(op())] != turn_) return;
    in_context_ = false;
    switch (strategy_.context_kind) {
      case ContextKind::all_gather:
        return scatter_key_gradients();
      case ContextKind::ring:
        body_.wait_for(Event::exchanged);
        return body_.free(keys_and_values("(passed on)"));
      case ContextKind::ulysses:
        return exchange_heads(is_gradient(op()) ? 0 : 1, is_gradient(op()) ? 1 : 0);
    }
  }

  // Keys and values of all context ranks.
  void gather_keys() {
    const BufferId all = keys_and_values("(gathered)");
    body_.alloc(all);
    on_context(CollectiveOp::all_gather, all);
    if (is_gradient(op())) body_.alloc(keys_and_values("(gradient)"));
  }

  void scatter_key_gradients() {
    if (is_gradient(op())) {
      const BufferId gradient = keys_and_values("(gradient)");
      on_context(CollectiveOp::reduce_scatter, gradient);
      body_.free(gradient);
    }
    body_.free(keys_and_values("(gathered)"));
  }

  // Around the ring, beside the attention over what has arrived: one rank's part is computed on
  // while the next one's comes in, in the backward pass with its gradient.
  void pass_keys_on() {
    const Bytes all = lowering_.local.keys_and_values(*attention_shape(), op().precision);
    const double twice = is_gradient(op()) ? 2 : 1;
    const BufferId parts =
        stage_.buffers.named(layer_.name + " keys and values (passed on)", MemoryTerm::workspace,
                             all * (2 * twice / static_cast<double>(strategy_.cp)), op().precision);
    body_.alloc(parts);
    body_.beside(
        lowering_.comm(CollectiveOp::all_gather, GroupKind::context, all * twice, op().precision),
        parts);
  }

  // All-to-alls of `queries` tensors of the heads' width and `keys` pairs of keys and values.
  void exchange_heads(int queries, int keys) {
    const Attention& shape = *attention_shape();
    const double tokens = static_cast<double>(shape.batch * shape.queries) /
                          static_cast<double>(strategy_.cp * strategy_.tp);
    const Bytes each = tokens * static_cast<double>(shape.head_dim) * element_size(op().precision);
    const double heads = static_cast<double>((queries + keys) * shape.heads);
    const double kv_heads = static_cast<double>(2 * keys * shape.kv_heads);
    const Bytes size = each * (heads + kv_heads);
    const BufferId moved = stage_.buffers.named(layer_.name + " heads (exchanged)",
                                                MemoryTerm::workspace, size, op().precision);
    body_.alloc(moved);
    body_.blocking(
        lowering_.comm(CollectiveOp::all_to_all, GroupKind::context, size, op().precision), moved);
    body_.free(moved);
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

  // An unfused cross-entropy holds more than the logits and their gradient, for as long as them.
  bool keeps_loss_copies() const { return lowering_.recipe.logit_bytes > 4; }
  BufferId loss_copy(TensorId logits) {
    return stage_.buffers.named(
        "cross-entropy copies", MemoryTerm::logits,
        Bytes((lowering_.recipe.logit_bytes - 4) * lowering_.local.elements(tensor(logits))),
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
    if (loss && keeps_loss_copies()) body_.alloc(loss_copy(op().reads[0]));
    BufferId extra;
    if (writes_output_matrix()) extra = head_gradient();
    if (op().quantised) extra = whole_matrix();
    if (extra) body_.alloc(extra);
    return extra;
  }

  // A matrix brought from 4 bits.
  BufferId whole_matrix() {
    const double elements = lowering_.local.matrix_elements(layer_, op());
    return stage_.buffers.named(layer_.name + " " + op().name + " weights", MemoryTerm::workspace,
                                elements * element_size(op().precision), op().precision);
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
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) {
      const bool each_pass = state->data->gathers_each_pass();
      if (!each_pass && !state->data->gathers_once()) continue;
      if (!each_pass && state->layer != pass_.layer) continue;  // gathered already
      if (each_pass) body_.alloc(state->gathered);
      const Event after = !lowering_.recipe.overlap_data ? Event::computed
                          : each_pass                    ? Event::started
                                                         : Event::updated;
      state->data->gather(lowering_, body_, state->gather,
                          state->gathered ? state->gathered : state->weights,
                          state->gathered ? state->weights : BufferId(), after);
    }
    body_.wait_for(Event::gathered);
  }

  void release_weights() {
    if (!pass_.backward() && !lowering_.recipe.reshard_after_forward) return;
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) {
      if (state->data->gathers_each_pass()) body_.free(state->gathered);
    }
  }

  void allocate_bucket() {
    if (std::exchange(bucket_, true)) return;
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) {
      if (state->bucket) body_.alloc(state->bucket);
    }
  }

  void reduce_gradients() {
    if (!pass_.backward() || pass_.leaves_reduction) return;
    reduce_bucket(stage_, pass_.layer, body_);
    bool reduced = bucket_ && stage_.data.reduces_each_backward();
    for (const LayerState* state : stage_.state.used_by(pass_.layer)) {
      const bool once = pass_.reduces_gradients && state->data->reduces_once();
      // A matrix that is shared is reduced once, after its own pass.
      if (!once || !state->gradients || state->layer != pass_.layer) continue;
      state->data->reduce(lowering_, body_, state->trained, state->gradients, {});
      reduced = true;
    }
    if (reduced && !lowering_.recipe.overlap_data) body_.wait_for(Event::gradients);
  }

  Stage& stage_;
  Lowering& lowering_;
  const Strategy& strategy_;
  const LayerPass& pass_;
  const Layer& layer_;
  Body& body_;
  std::set<TensorId> alive_, waiting_;
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
    if (!state->bucket) continue;
    state->data->reduce(stage.lowering, body, state->trained, state->gradients, state->bucket,
                        layer_shift);
    body.free(state->bucket);
  }
}

void reduce_bucket(Stage& stage, const LayerOf& layer, Body& body) {
  Body inner = body.inner();
  reduce_bucket(stage, layer.kind, inner);
  body.loop({.count = 1, .body = {}, .over_layers = true, .first = layer.index}, std::move(inner));
}

}  // namespace orrery

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "plan/lowering.h"

namespace orrery {

namespace {

// Channels of what enters a chunk: activations are even, gradients odd.
std::int32_t channel(std::int64_t chunk, bool forward) {
  return static_cast<std::int32_t>(2 * chunk + (forward ? 0 : 1));
}

ClassId class_of(std::int64_t stage) { return ClassId(static_cast<std::uint32_t>(stage)); }

// A run of equal layers of a chunk; `first` counts the stage's layers of that kind.
struct Stretch {
  LayerId layer;
  std::int64_t first, count;
  Recompute recompute;
};

// What the data stream does beside each layer of a backward stretch.
struct Turns {
  bool leave_reduction = false, reduce_left = false;
  LayerOf left = {};
};

class StageWriter {
 public:
  explicit StageWriter(Stage& stage)
      : stage_(stage),
        lowering_(stage.lowering),
        graph_(stage.lowering.graph),
        s_(stage.lowering.strategy) {}

  void write() {
    stage_.ranks.events = static_cast<std::int32_t>(Event::count);
    Body step;
    stage_.state.allocate(step);
    const std::vector<Folded> schedule =
        fold(steps(s_.schedule, s_.pp, s_.vpp, s_.micro_batches(), stage_.stage));
    write_schedule(schedule, step);
    finish_step(stage_, step);
    stage_.ranks.step = step.take();
  }

 private:
  // --- the step --------------------------------------------------------------------------------
  void write_schedule(const std::vector<Folded>& schedule, Body& body) {
    for (const Folded& node : schedule) {
      if (node.count == 1 && node.body.empty()) {
        write_call(node.step, body);
        continue;
      }
      Body inner;
      if (node.body.empty()) {
        write_call(node.step, inner);
      } else {
        write_schedule(node.body, inner);
      }
      body.loop({.count = node.count, .body = {}}, std::move(inner));
    }
  }

  void write_call(Step step, Body& body) {
    if (step.forward() ? !gathers_once() || !gathers_at_start(stage_)
                       : !reduces_once() || !lowering_.recipe.overlap_data) {
      step.edge = false;  // like any other
    }
    body.call({block(step), frame_of(step.pass), step.chunk});
  }

  static Frame frame_of(StepPass pass) {
    switch (pass) {
      case StepPass::forward:
        return Frame::open;
      case StepPass::input_gradient:
        return Frame::reuse;
      case StepPass::backward:
      case StepPass::weight_gradient:
        break;
    }
    return Frame::close;
  }

  bool gathers_once() const { return stage_.data.gathers_once() || stage_.experts.gathers_once(); }
  bool gathers_each_pass() const {
    return stage_.data.gathers_each_pass() || stage_.experts.gathers_each_pass();
  }
  bool reduces_once() const { return stage_.data.reduces_once() || stage_.experts.reduces_once(); }

  // --- blocks ----------------------------------------------------------------------------------
  BlockId block(const Step& step) {
    const auto key = std::tuple(step.pass, step.chunk, step.edge);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) return found->second;
    Body body;
    write_block(step, body);
    const std::string edge = !step.edge ? "" : step.forward() ? "first " : "last ";
    const std::string name = edge + std::string(name_of(step.pass)) + " chunk ";
    return blocks_[key] =
               stage_.ranks.blocks.push_back({name + std::to_string(step.chunk), body.take()});
  }

  void write_block(const Step& step, Body& body) {
    switch (step.pass) {
      case StepPass::forward:
        return write_forward(step, body);
      case StepPass::backward:
      case StepPass::input_gradient:
        return write_backward(step, body);
      case StepPass::weight_gradient:
        return write_weight_gradients(step, body);
    }
  }

  Place here(std::int64_t chunk) const { return {stage_.stage, chunk}; }
  bool at_start(std::int64_t chunk) const { return !lowering_.placement.previous(here(chunk)); }
  bool at_end(std::int64_t chunk) const { return !lowering_.placement.next(here(chunk)); }

  void write_forward(const Step& step, Body& body) {
    if (at_start(step.chunk)) {
      for (const Stretch& stretch : outside(graph_.front)) write_layers(stretch, step, {}, body);
    } else {
      receive(step, body);
    }
    write_stack(step, body);
    if (at_end(step.chunk)) {
      for (const Stretch& stretch : outside(graph_.back)) write_layers(stretch, step, {}, body);
    } else {
      send(step, body);
    }
  }

  void write_backward(const Step& step, Body& body) {
    if (at_end(step.chunk)) {
      write_reversed(outside(graph_.back), step, body);
    } else {
      receive(step, body);
    }
    write_stack(step, body);
    if (at_start(step.chunk)) {
      write_reversed(outside(graph_.front), step, body);
      drop_gradient_of_frozen(body);
    } else {
      send(step, body);
    }
  }

  // From the first layer to the last: the input's gradient reached the first one last, and what was
  // put aside last lies on top.
  void write_weight_gradients(const Step& step, Body& body) {
    if (at_start(step.chunk)) {
      for (const Stretch& stretch : outside(graph_.front)) write_layers(stretch, step, {}, body);
    }
    write_stack(step, body);
    if (at_end(step.chunk)) {
      for (const Stretch& stretch : outside(graph_.back)) write_layers(stretch, step, {}, body);
    }
  }

  // The gradient of what nobody trained gave reaches nobody.
  void drop_gradient_of_frozen(Body& body) {
    const Layer& first = graph_.layers[graph_.body.front().layer];
    const bool taken = !graph_.layers[graph_.front.back().layer].backward.empty();
    if (first.input_gradient && !taken) body.free(stage_.buffers.hidden_gradient());
  }

  void write_reversed(std::vector<Stretch> stretches, const Step& step, Body& body) {
    std::reverse(stretches.begin(), stretches.end());
    for (const Stretch& stretch : stretches) {
      // A frozen tower and what only feeds it have no backward pass.
      if (!graph_.layers[stretch.layer].backward.empty()) write_layers(stretch, step, {}, body);
    }
  }

  // --- neighbours ------------------------------------------------------------------------------
  BufferId travelling(const Step& step) {
    return step.forward() ? stage_.buffers.hidden() : stage_.buffers.hidden_gradient();
  }
  Place sender(const Step& step) const {
    const Place to = here(step.chunk);
    return *(step.forward() ? lowering_.placement.previous(to) : lowering_.placement.next(to));
  }
  Place receiver(const Step& step) const {
    const Place from = here(step.chunk);
    return *(step.forward() ? lowering_.placement.next(from) : lowering_.placement.previous(from));
  }

  // Where tensor ranks hold the same activations, each may send a slice of them; those who receive
  // the slices gather them.
  bool slices(Place other) const {
    return lowering_.recipe.scatters_sends && s_.tp > 1 && !s_.sequence_parallel &&
           other.stage != stage_.stage;
  }
  // Nothing where a stage's own chunk goes on.
  Bytes size_sent(BufferId buffer, Place other) const {
    if (other.stage == stage_.stage) return Bytes();
    return stage_.ranks.buffers[buffer].size / static_cast<double>(slices(other) ? s_.tp : 1);
  }

  void receive(const Step& step, Body& body) {
    const Place from = sender(step);
    const BufferId buffer = travelling(step);
    const Buffer whole = stage_.ranks.buffers[buffer];
    const Bytes size = size_sent(buffer, from);
    const BufferId arriving =
        slices(from)
            ? stage_.buffers.named("received slice", MemoryTerm::workspace, size, whole.dtype)
            : buffer;
    body.alloc(arriving);
    body.receive({class_of(from.stage), channel(step.chunk, step.forward()), size, arriving});
    if (!slices(from)) return;
    body.alloc(buffer);
    body.blocking(
        lowering_.comm(CollectiveOp::all_gather, GroupKind::tensor, whole.size, whole.dtype),
        buffer, arriving);
    body.free(arriving);
  }

  void send(const Step& step, Body& body) {
    const Place to = receiver(step);
    const BufferId buffer = travelling(step);
    body.send({class_of(to.stage), channel(to.chunk, step.forward()), size_sent(buffer, to), buffer,
               slices(to)});
    body.free(buffer);
  }

  // --- layers ----------------------------------------------------------------------------------
  // What stands before or after the stack; towers recompute as the stack does.
  std::vector<Stretch> outside(const std::vector<Run>& runs) const {
    std::vector<Stretch> found;
    std::map<LayerId, std::int64_t> before;
    for (const Run& run : runs) {
      const Recompute recompute = run.count > 1 ? s_.recompute : Recompute::none;
      found.push_back({run.layer, before[run.layer], run.count, recompute});
      before[run.layer] += run.count;
    }
    return found;
  }

  // The layers of a chunk that recompute come first; a stage's are spread over its chunks.
  std::int64_t recomputed_layers(std::int64_t chunk) const {
    const std::vector<std::int64_t>& split = lowering_.split[stage_.stage];
    std::int64_t first = 0, total = 0;
    for (std::size_t i = 0; i < split.size(); ++i) {
      if (static_cast<std::int64_t>(i) < chunk) first += split[i];
      total += split[i];
    }
    const std::int64_t layers = split[chunk];
    if (s_.recompute == Recompute::none || layers == 0) return 0;
    const double share = s_.recompute_share * static_cast<double>(total);
    const auto all = static_cast<std::int64_t>(std::ceil(share - 1e-9));
    return all * (first + layers) / total - all * first / total;
  }

  std::vector<Stretch> stretches(std::int64_t chunk) const {
    std::map<LayerId, std::int64_t> before;  // this stage's layers of a kind so far
    for (std::int64_t earlier = 0; earlier < chunk; ++earlier) {
      for (const Run& run : lowering_.body_of(stage_.stage, earlier))
        before[run.layer] += run.count;
    }
    std::int64_t again = recomputed_layers(chunk);
    std::vector<Stretch> found;
    const auto add = [&](LayerId layer, std::int64_t count, Recompute recompute) {
      if (count == 0) return;
      found.push_back({layer, before[layer], count, recompute});
      before[layer] += count;
    };
    for (const Run& run : lowering_.body_of(stage_.stage, chunk)) {
      const std::int64_t recomputed = std::min(again, run.count);
      add(run.layer, recomputed, s_.recompute);
      add(run.layer, run.count - recomputed, Recompute::none);
      again -= recomputed;
    }
    return found;
  }

  void write_stack(const Step& step, Body& body) {
    std::vector<Stretch> parts = stretches(step.chunk);
    if (!ascends(step)) std::reverse(parts.begin(), parts.end());
    const BufferId ahead = prefetched(parts, step);
    if (ahead) body.alloc(ahead);
    if (ahead && !step.forward() && stage_.data.reduces_each_backward()) {
      write_backward_gathering_ahead(parts, step, body);
    } else {
      for (const Stretch& stretch : parts) write_layers(stretch, step, {}, body);
    }
    if (ahead) body.free(ahead);
  }

  // The weights of the next layer, gathered while this one computes: those of the largest kind.
  BufferId prefetched(const std::vector<Stretch>& parts, const Step& step) {
    const bool gathers = step.forward() ? gathers_in_forward(step) : gathers_in_backward();
    std::int64_t layers = 0;
    Bytes size;
    Precision dtype = Precision::bf16;
    for (const Stretch& stretch : parts) {
      layers += stretch.count;
      Bytes all;
      for (const LayerState* state : stage_.state.used_by(stretch.layer)) {
        if (!state->gathered) continue;
        all += stage_.ranks.buffers[state->gathered].size;
        dtype = stage_.ranks.buffers[state->gathered].dtype;
      }
      size = std::max(size, all);
    }
    if (!gathers_each_pass() || !gathers || !lowering_.recipe.overlap_data || layers < 2) return {};
    return stage_.buffers.named("prefetched weights", MemoryTerm::communication, size, dtype);
  }

  void write_layers(const Stretch& stretch, const Step& step, const Turns& turns, Body& body) {
    if (stretch.count == 0) return;
    Body inner = body.inner();
    write_layer(stretch.layer, stretch.recompute, step, inner, turns);
    if (inner.size() == 0) return;
    loop_over(stretch, step, std::move(inner), body);
  }

  static bool ascends(const Step& step) {
    return step.forward() || step.pass == StepPass::weight_gradient;
  }

  void loop_over(const Stretch& stretch, const Step& step, Body inner, Body& body) {
    body.loop({.count = stretch.count,
               .body = {},
               .over_layers = true,
               .order = ascends(step) ? Order::ascending : Order::descending,
               .first = stretch.first},
              std::move(inner));
  }

  // Each layer's gather goes out before the reduction of the layer above, as FSDP's backward
  // prefetch orders them, so that the next layer need not wait for both.
  void write_backward_gathering_ahead(const std::vector<Stretch>& parts, const Step& step,
                                      Body& body) {
    LayerOf left;
    for (const Stretch& stretch : parts) {
      const std::int64_t last = stretch.first + stretch.count - 1;
      write_layers({stretch.layer, last, 1, stretch.recompute}, step,
                   {.leave_reduction = true, .left = left}, body);
      write_layers({stretch.layer, stretch.first, stretch.count - 1, stretch.recompute}, step,
                   {.leave_reduction = true, .reduce_left = true}, body);
      left = {stretch.layer, stretch.first};
    }
    reduce_bucket(stage_, left, body);
  }

  void write_layer(LayerId id, Recompute recompute, const Step& step, Body& body,
                   const Turns& turns) {
    const Layer& layer = graph_.layers[id];
    const LayerPasses passes = passes_of(layer, recompute);
    const SplitBackward split = split_backward(layer, passes);
    LayerPass pass = {.layer = id,
                      .turns = turns_of(step.pass, passes, split),
                      .kept = passes.kept,
                      .entering = {},
                      .leaving = {},
                      .step = step.pass,
                      .held = split.held};
    switch (step.pass) {
      case StepPass::forward:
        enter_forward(layer, recompute, pass, body);
        pass.gathers_weights = gathers_in_forward(step);
        break;
      case StepPass::backward:
      case StepPass::input_gradient:
        enter_backward(layer, recompute, pass, body);
        pass.gathers_weights = gathers_in_backward();
        break;
      case StepPass::weight_gradient:
        pass.entering = split.held;
        break;
    }
    pass.reduces_gradients = !step.forward() && step.edge;
    pass.leaves_reduction = turns.leave_reduction;
    pass.reduces_left = turns.reduce_left;
    pass.left = turns.left;
    const bool travels = offloads(layer) && step.pass != StepPass::weight_gradient;
    const BufferId staging = travels ? on_the_way(layer, passes) : BufferId();
    if (staging) body.alloc(staging);
    if (staging && !step.forward()) bring_back(staging, body);
    write_pass(stage_, pass, body);
    if (staging && step.forward()) put_away(staging, body);
    if (staging) body.free(staging);
  }

  // --- offload of activations ------------------------------------------------------------------
  // What a layer keeps lies on the host between its passes. It goes there while the next layer
  // computes and comes back while the one above does, through a buffer on the GPU.
  bool offloads(const Layer& layer) const {
    return s_.offload == Offload::activations && layer.input && layer.output;
  }

  BufferId on_the_way(const Layer& layer, const LayerPasses& passes) {
    Bytes size;
    for (const auto& [tensor, share] : passes.kept) {
      if (share == 1) size += lowering_.local.bytes(layer.tensors[tensor]);
    }
    if (size == Bytes()) return {};
    return stage_.buffers.named(layer.name + " (on the way)", MemoryTerm::communication, size,
                                layer.tensors[layer.input].dtype);
  }

  void put_away(BufferId staging, Body& body) {
    body.fetch({stage_.ranks.buffers[staging].size, true, s_.offload_to_nvme}, Event::computed);
  }

  void bring_back(BufferId staging, Body& body) {
    body.fetch({stage_.ranks.buffers[staging].size, false, s_.offload_to_nvme}, Event::started);
    body.wait_for(Event::copied);
  }

  static const std::vector<Turn>& turns_of(StepPass pass, const LayerPasses& passes,
                                           const SplitBackward& split) {
    switch (pass) {
      case StepPass::forward:
        return passes.forward;
      case StepPass::backward:
        return passes.backward;
      case StepPass::input_gradient:
        return split.input;
      case StepPass::weight_gradient:
        break;
    }
    return split.weights;
  }

  // What is kept in whole; of other tensors a copy of the part is kept.
  static std::set<TensorId> kept_whole(const LayerPass& pass) {
    std::set<TensorId> kept;
    for (const auto& [tensor, share] : pass.kept) {
      if (share == 1) kept.insert(tensor);
    }
    return kept;
  }

  void enter_forward(const Layer& layer, Recompute recompute, LayerPass& pass, Body& body) {
    pass.leaving = kept_whole(pass);
    if (leaves_input(layer, recompute, pass)) {
      pass.leaving.erase(layer.input);
      body.alloc(checkpoint(layer));
    }
    if (layer.input) pass.entering.insert(layer.input);
    if (layer.output) pass.leaving.insert(layer.output);
  }

  void enter_backward(const Layer& layer, Recompute recompute, LayerPass& pass, Body& body) {
    pass.entering = kept_whole(pass);
    if (leaves_input(layer, recompute, pass)) restore_checkpoint(layer, body);
    if (layer.output_gradient) pass.entering.insert(layer.output_gradient);
    if (layer.input_gradient) pass.leaving.insert(layer.input_gradient);
  }

  bool gathers_in_forward(const Step& step) const { return gathers_each_pass() || step.edge; }

  bool gathers_in_backward() const {
    return gathers_each_pass() && lowering_.recipe.reshard_after_forward;
  }

  // A checkpoint divided over the tensor ranks (Megatron's distribute-saved-activations).
  bool divides_input(Recompute recompute) const {
    return recompute == Recompute::full && lowering_.recipe.shards_checkpoints && s_.tp > 1 &&
           !s_.sequence_parallel;
  }

  // Whether the input is kept elsewhere than where it came in.
  bool leaves_input(const Layer& layer, Recompute recompute, const LayerPass& pass) const {
    const bool away = offloads(layer) && pass.kept.contains(layer.input);
    return away || divides_input(recompute);
  }

  BufferId input_buffer(const Layer& layer) {
    return stage_.buffers.passing(layer.takes, layer.tensors[layer.input]);
  }

  BufferId checkpoint(const Layer& layer) {
    const Buffer input = stage_.ranks.buffers[input_buffer(layer)];
    const std::string name = layer.takes + " (checkpoint)";
    if (s_.offload == Offload::activations) {
      return stage_.buffers.named(name, MemoryTerm::host, input.size, input.dtype);
    }
    return stage_.buffers.named(name, MemoryTerm::activations,
                                input.size / static_cast<double>(s_.tp), input.dtype);
  }

  void restore_checkpoint(const Layer& layer, Body& body) {
    const BufferId input = input_buffer(layer);
    const Buffer x = stage_.ranks.buffers[input];
    body.alloc(input);
    if (s_.offload != Offload::activations) {
      body.blocking(lowering_.comm(CollectiveOp::all_gather, GroupKind::tensor, x.size, x.dtype),
                    input, checkpoint(layer));
    }
    body.free(checkpoint(layer));
  }

  Stage& stage_;
  Lowering& lowering_;
  const OpGraph& graph_;
  const Strategy& s_;
  std::map<std::tuple<StepPass, std::int32_t, bool>, BlockId> blocks_;
};

}  // namespace

RankClass lower_stage(Lowering& lowering, std::int64_t stage) {
  const Strategy& s = lowering.strategy;
  RankClass ranks = {.name = "stage " + std::to_string(stage),
                     .ranks = s.tp * s.dp * s.cp,
                     .stage = stage,
                     .buffers = {},
                     .blocks = {},
                     .step = {}};
  const DataParallel data(s, lowering.recipe, false), experts(s, lowering.recipe, true);
  Stage parts = {lowering,
                 data,
                 experts,
                 ranks,
                 StageState(lowering, stage, ranks, data, experts),
                 StageBuffers(lowering, ranks),
                 stage};
  StageWriter(parts).write();
  return ranks;
}

}  // namespace orrery

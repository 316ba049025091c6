// What the parts of lower() share; for plan/lower*.cpp only.
//
// lower.cpp          stages, one after another, and how layers are split over them
// lower_state.cpp    what a stage holds for the whole step: weights, gradients, optimizer
// lower_buffers.cpp  activations and gradients that pass, are kept or wait
// lower_body.cpp     instructions of one stretch of work, and the events that order its streams
// lower_layer.cpp    one pass of one layer: operators, buffers' lifetimes, tensor parallelism
// lower_stage.cpp    blocks of a chunk and the order in which a stage calls them
// lower_finish.cpp   the end of a step: last reductions, the update, gathers
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/local.h"
#include "plan/lower.h"
#include "plan/saving.h"
#include "plan/schedule.h"

namespace orrery {

// The Program being written, with equal kernels and collectives stored once.
struct Lowering {
  const OpGraph& graph;
  const Strategy& strategy;
  const Recipe& recipe;
  Local local;
  Placement placement;
  std::vector<std::vector<std::int64_t>> split;  // layers by stage and chunk
  Program program;
  std::map<std::string, KernelId> kernels;
  std::map<std::string, CommId> comms;
  std::map<std::tuple<const Layer*, OpId, bool, double>, KernelId> turns;  // found before

  // Layers of a chunk in order of execution, the stack's alone.
  std::vector<Run> body_of(std::int64_t stage, std::int64_t chunk) const;
  // All layers of a stage, in order of execution.
  std::vector<Run> layers_of(std::int64_t stage) const;
  KernelId kernel(const Layer& layer, const Turn& turn);
  CommId comm(CollectiveOp op, GroupKind kind, Bytes size, Precision dtype,
              std::int64_t copies = 1);
};

// The events of a class. One of each is enough: a wait means the latest signal before it.
enum class Event {
  computed,   // the last kernel before a collective or a send, and of every pass
  reduced,    // the last collective of the tensor stream
  started,    // an early kernel of a layer: the gather of the next one may begin
  gathered,   // weights
  received,   // an activation or its gradient
  gradients,  // reduced over the data ranks
  exchanged,  // keys and values of another context rank
  copied,     // to or from the host
  updated,
  count,
};
inline EventId id(Event event) { return EventId(static_cast<std::uint32_t>(event)); }

// A stretch of instructions under construction.
class Body {
 public:
  void alloc(BufferId buffer, std::int64_t count = 1);
  void free(BufferId buffer, std::int64_t count = 1);
  void move(BufferId from, BufferId to);
  void compute(Compute compute);
  // A collective between the kernel before it and the one after it.
  void blocking(CommId comm, BufferId buffer, BufferId source = {});
  // A collective beside the next kernel; what follows that one waits for it.
  void beside(CommId comm, BufferId buffer);
  // To or from the host; what follows waits for it.
  void copy(Copy copy);
  // From the host, after `after`; nothing waits but what is told to.
  void fetch(Copy copy, Event after);
  // A collective on the data stream that starts after `after`.
  void on_data(CommId comm, BufferId buffer, BufferId source, Event after, Event signal,
               std::int64_t layer_shift = 0);
  void receive(Recv recv);
  void send(Send send);  // of what the last kernel wrote
  void update(Update update);
  void call(Call call);
  // The rest waits for `event`.
  void wait_for(Event event);
  // Signals `computed` from the last kernel.
  void mark_computed();
  // Signals `started` from the first kernel after instruction `from` that signals nothing yet.
  void mark_started(std::size_t from);
  std::size_t size() const { return instructions_.size(); }

  // A stretch inside of this one, which waits for what this one waits for.
  Body inner() const;
  // Repeats it: what its end leaves to wait for, its beginning waits for too.
  void loop(Loop shape, Body body);

  std::vector<Instruction> take() { return std::move(instructions_); }

 private:
  void push(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  std::vector<EventId> take_waits();

  std::vector<Instruction> instructions_;
  std::set<Event> waits_;  // of the next kernel or collective
};

// How gradients and weights travel between the replicas of a weight, and when. Experts have
// replicas of their own: fewer, since their weights are spread over more ranks.
class DataParallel {
 public:
  DataParallel(const Strategy& strategy, const Recipe& recipe, bool experts);

  bool shards(Zero what) const {
    const bool fetched = what == Zero::weights && strategy_.offload == Offload::parameters;
    return strategy_.zero >= what && (shard_ > 1 || fetched);
  }
  // ZeRO-3 with a pipeline and without resharding keeps what it gathered for the whole step.
  bool holds_gathered() const;
  bool gathers_each_pass() const { return shards(Zero::weights) && !holds_gathered(); }
  bool gathers_once() const;           // at the start of the step (weights that the last updated)
  bool reduces_each_backward() const;  // else once, in the last backward of each chunk
  bool reduces_once() const { return replicas_ > 1 && !reduces_each_backward(); }
  std::int64_t shard() const { return shard_; }

  // From `source` (or in place) to `buffer`; several collectives where shards have replicas.
  void reduce(Lowering&, Body&, double parameters, BufferId buffer, BufferId source,
              std::int64_t layer_shift = 0) const;
  void gather(Lowering&, Body&, Bytes size, BufferId buffer, BufferId source, Event after) const;

 private:
  const Strategy& strategy_;
  const Recipe& recipe_;
  GroupKind shard_kind_, replica_kind_;
  std::int64_t replicas_, shard_;
};

// What a stage holds of one kind of layer for the whole step, sizes of one layer: of its experts,
// or of all else. Buffers are none where there is nothing to hold.
struct LayerState {
  LayerId layer;
  std::int64_t count;        // layers
  const DataParallel* data;  // of its weights
  double trained, frozen;    // parameters of this rank, before ZeRO
  Bytes gather;              // of its weights, as they travel
  BufferId weights, gradients, optimizer;
  BufferId gathered;  // ZeRO-3: weights of all shard ranks, for one pass or for the whole step
  BufferId bucket;    // ZeRO-2 and 3: gradients before they are scattered
};

class StageState {
 public:
  // Declares the buffers of `stage`.
  StageState(Lowering& lowering, std::int64_t stage, RankClass& ranks, const DataParallel& data,
             const DataParallel& experts);

  // What a layer uses: its own, and the embedding's where the head shares its matrix.
  std::vector<const LayerState*> used_by(LayerId layer) const;
  BufferId weight(LayerId layer, TensorId parameter) const;
  BufferId gradient(LayerId layer, TensorId parameter_gradient) const;
  const std::vector<LayerState>& all() const { return states_; }
  bool holds(LayerId layer) const { return !used_by(layer).empty(); }
  double updated() const;  // parameters that this rank's optimizer updates

  void allocate(Body& body) const;

 private:
  void add(LayerId layer, std::int64_t count);
  void add(LayerId layer, std::int64_t count, const DataParallel& data,
           const std::vector<TensorId>& parameters);
  void add_parts(LayerState& state, const std::vector<TensorId>& parameters);
  Bytes stored(const Tensor& parameter) const;
  MemoryTerm place_of(MemoryTerm term) const;
  bool shared_with_embedding(LayerId layer, TensorId parameter) const;

  bool holds_both_ends_;  // the embedding and the head, which may share a matrix
  Lowering& lowering_;
  RankClass& ranks_;
  const DataParallel& data_;
  const DataParallel& experts_;
  std::vector<LayerState> states_;
  std::map<std::pair<LayerId, TensorId>, BufferId> weights_, gradients_;
};

// The parameter that a tied head shares with the embedding: the table, the output matrix.
TensorId embedding_table(const Layer& embedding);
TensorId output_matrix(const Layer& head);
TensorId gradient_of(const Layer& layer, TensorId parameter);

// Buffers of activations and gradients of a stage, made when first used.
class StageBuffers {
 public:
  StageBuffers(Lowering& lowering, RankClass& ranks) : lowering_(lowering), ranks_(ranks) {}

  // What passes from layer to layer under a name, and its gradient.
  BufferId passing(const std::string& name, const Tensor& tensor);
  BufferId passing_gradient(const std::string& name, const Tensor& tensor);
  // That of the stack.
  BufferId hidden();
  BufferId hidden_gradient();
  BufferId of(LayerId layer, TensorId tensor, bool kept);
  // Where the content of a buffer waits for the weights' gradients.
  BufferId held(BufferId content);
  BufferId named(const std::string& name, MemoryTerm term, Bytes size, Precision dtype);

 private:
  Lowering& lowering_;
  RankClass& ranks_;
  std::map<std::tuple<LayerId, TensorId, MemoryTerm>, BufferId> tensors_;
  std::map<std::pair<std::string, MemoryTerm>, BufferId> named_;
};

// One of a stage's layers of a kind.
struct LayerOf {
  LayerId kind;
  std::int64_t index = 0;
};

// One pass over one layer.
struct LayerPass {
  LayerId layer;
  const std::vector<Turn>& turns;
  const std::map<TensorId, double>& kept;
  std::set<TensorId> entering, leaving;
  StepPass step;
  std::set<TensorId> held = {};    // from the input's gradient to those of the weights
  bool gathers_weights = false;    // on the data stream, before the pass
  bool reduces_gradients = false;  // on the data stream, after the pass
  // Where each pass gathers, the next gather must not queue behind this pass's reduction: the
  // reduction is left to the next pass, which gathers first.
  bool leaves_reduction = false;
  bool reduces_left = false;  // that of the same kind of layer, one turn of the loop ago
  LayerOf left = {};          // that of another kind, or of none

  bool backward() const { return step != StepPass::forward; }
};

struct Stage {
  Lowering& lowering;
  DataParallel data, experts;
  RankClass& ranks;
  StageState state;
  StageBuffers buffers;
  std::int64_t stage;
};

void write_pass(Stage& stage, const LayerPass& pass, Body& body);
// Reduces the gradients of the last pass over `layer` out of its bucket.
void reduce_bucket(Stage& stage, LayerId layer, Body& body, std::int64_t layer_shift = 0);
// The same of one layer, outside of the loop over its kind.
void reduce_bucket(Stage& stage, const LayerOf& layer, Body& body);
// Whether weights that the last step updated travel in the first forward pass, not after the
// update.
bool gathers_at_start(const Stage& stage);
// Reduces what the passes left to the end, updates, and gathers.
void finish_step(Stage& stage, Body& body);
RankClass lower_stage(Lowering& lowering, std::int64_t stage);

}  // namespace orrery

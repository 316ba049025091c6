// Who does what in which order: the work of each class of ranks, without durations or pointers.
//
// A Program is read by three evaluators. The rules that make them agree:
// - Instructions of one stream run in program order. Across streams, `signal` and `wait` order them
//   as CUDA events do: a wait refers to the latest signal of that event before it in program order
//   (the previous iteration's inside a Loop), and an event never signalled does not block. Program
//   order itself is always a legal sequential order, so an executor may ignore streams.
// - A Call runs a Block. A forward Call of a chunk opens a frame; a backward Call closes the oldest
//   open frame of that chunk. Where the backward pass is split, the Call of the input's gradient
//   works in the oldest open frame that no such Call has worked in, and leaves it open; that of the
//   weights' gradients closes the oldest. Inside a frame each buffer is a stack: Alloc pushes an
//   instance, Free pops the newest. Writing goes to the newest instance, reading to the newest one
//   that has been written: a kernel that reads and writes a buffer works in place, or, after an
//   Alloc, from the instance below into the new one.
// - Buffers of persistent terms (weights, gradients, optimizer) are arrays, allocated at the start
//   of the step and never freed, indexed by the innermost Loop that is marked as running over
//   layers (0 outside of one). Writing gradients accumulates; the Update clears them.
// - A Send to its own class hands over within the rank and has no size.
// - A Send of class a on channel c matches the Recv on c of the class that it names, in order. A
//   Send never waits for its receiver; a Recv ends no sooner than its Send.
// - Of a class only one rank is written down: of each group its instruction is the same for all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/id.h"
#include "model/op.h"
#include "plan/ranks.h"
#include "plan/strategy.h"

namespace orrery {

struct KernelTag;
struct BufferTag;
struct BlockTag;
struct EventTag;
struct ClassTag;
struct CommTag;
using KernelId = Id<KernelTag>;
using BufferId = Id<BufferTag>;
using BlockId = Id<BlockTag>;
using EventId = Id<EventTag>;
using ClassId = Id<ClassTag>;
using CommId = Id<CommTag>;

enum class Stream { compute, tensor, data, pipeline, context, copy };
std::string_view name_of(Stream);

// What a buffer is for: the terms of a memory answer.
enum class MemoryTerm {
  weights,
  gradients,
  optimizer,
  activations,    // saved for the backward pass
  workspace,      // lives within one block
  logits,         // of the loss, saved or not
  communication,  // gathered weights, reduce buckets
  framework,      // context, allocator
  host,           // in the node's memory or on its drives, not the GPU's (offload)
};
std::string_view name_of(MemoryTerm);

struct Buffer {
  std::string name;
  MemoryTerm term;
  Bytes size;  // of one instance
  Precision dtype;
  // A view: this buffer is a part of `whole`, which is allocated, freed and communicated for it.
  // Parts lie one after another in the order of their ids.
  BufferId whole = {};
};

// One kernel's work on one rank: the operator's kind with its local shape. Interned: equal kernels
// share an id, so that a price is computed once.
struct Kernel {
  std::string name;  // of the operator it came from
  OpKind kind;
  Pass pass;
  Shape shape;  // local
  Precision precision;
  Bytes read, written;  // local, each operand once
  Flop flop;            // local, what the kernel does
  Flop model_flop;      // local, what the model needs: nothing repeated or recomputed
  bool recomputed = false;
  double dequantised = 0;   // weights brought from 4 bits first
  bool of_experts = false;  // works on tokens' copies
};

enum class CollectiveOp { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast };
std::string_view name_of(CollectiveOp);

struct Comm {
  CollectiveOp op;
  GroupKind kind;
  Group group;
  Bytes size;  // nccl-tests' size: the whole vector (gathered, or before scattering)
  Precision dtype;
  // Of an all-to-all of tokens: how many copies of each are in it, of which those for one node may
  // travel there as one.
  std::int64_t copies = 1;
};

// --- instructions ------------------------------------------------------------------------------
struct Compute {
  KernelId kernel;
  std::vector<BufferId> reads, writes;  // in the operator's order; none: not written, kept before
};
struct Collective {
  CommId comm;
  BufferId buffer;               // the result; in place where there is no source
  BufferId source = {};          // the operand
  std::int64_t layer_shift = 0;  // of persistent buffers: this many layers from the Loop's index
};
struct Send {
  ClassId to;
  std::int32_t channel;
  Bytes size;
  BufferId buffer;
  bool slice = false;  // only this tensor rank's equal share of its rows
};
struct Recv {
  ClassId from;
  std::int32_t channel;
  Bytes size;
  BufferId buffer;
};
// To or from host memory (offload).
struct Copy {
  Bytes size;
  bool to_host;
  bool drives = false;  // on to the node's drives, or from them
};
// The optimizer's update of `parameters` weights held by this rank; bytes as the optimizer touches.
struct Update {
  std::int64_t parameters;
  Bytes read, written;
  bool on_host = false;  // by the node's cores, on a state in their memory
  bool drives = false;   // on its drives
};
struct Alloc {
  BufferId buffer;
  std::int64_t count = 1;
};
struct Free {
  BufferId buffer;
  std::int64_t count = 1;
};
// The newest instance of one buffer becomes the newest of another of its size. Takes no time.
struct Move {
  BufferId from, to;
};
enum class Frame { none, open, reuse, close };
struct Call {
  BlockId block;
  Frame frame = Frame::none;
  std::int32_t chunk = 0;  // whose frame
};

enum class Order { ascending, descending };

struct Instruction;
struct Loop {
  std::int64_t count;
  std::vector<Instruction> body;
  bool over_layers = false;  // its index selects the instance of persistent buffers
  Order order = Order::ascending;
  std::int64_t first = 0;  // indices are first .. first + count - 1
};

struct Instruction {
  std::variant<Compute, Collective, Send, Recv, Copy, Update, Alloc, Free, Move, Call, Loop> what;
  Stream stream = Stream::compute;
  std::vector<EventId> wait = {};
  EventId signal = {};  // none: nobody waits
};

struct Block {
  std::string name;  // "forward chunk 0"
  std::vector<Instruction> body;
};

// Ranks that behave alike: one pipeline stage of every tensor, context and data rank.
struct RankClass {
  std::string name;
  std::int64_t ranks;  // how many
  std::int64_t stage;
  IdVector<BufferId, Buffer> buffers;
  IdVector<BlockId, Block> blocks;  // a block calls only blocks before it
  std::vector<Instruction> step;    // one optimizer step
  std::int32_t events = 0;          // EventIds used
};

struct Program {
  IdVector<KernelId, Kernel> kernels;
  IdVector<CommId, Comm> comms;
  IdVector<ClassId, RankClass> classes;
  std::int64_t tokens;  // trained by one step, all ranks
};

// What one rank of a class does in a step, loop counts multiplied.
struct Totals {
  Flop flop;                                  // matrix work, recomputation included
  Flop model_flop;                            // without what is done twice
  Bytes collective, point_to_point;           // sizes handed to collectives and sends
  Bytes updated;                              // read and written by updates on the GPU
  std::int64_t kernels = 0;                   // launches of all
  IdVector<KernelId, std::int64_t> launches;  // of each
};
Totals totals(const Program&, const RankClass&);
std::int64_t instruction_count(const Program&);  // stored, not executed: the Program's size

}  // namespace orrery

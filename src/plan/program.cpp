#include "plan/program.h"

#include <utility>

namespace orrery {
namespace {

template <class... F>
struct Visitor : F... {
  using F::operator()...;
};
template <class... F>
Visitor(F...) -> Visitor<F...>;

// Visits each stored instruction once, with how often it runs in a step.
class Counter {
 public:
  Counter(const Program& program, const RankClass& rank_class)
      : program_(program), class_(rank_class), runs_(class_.blocks.size(), 0) {
    totals_.launches = IdVector<KernelId, std::int64_t>(program.kernels.size(), 0);
  }

  Totals count() {
    add(class_.step, 1);
    // Blocks call only blocks before them: from the last, all calls of a block are known.
    for (std::size_t i = class_.blocks.size(); i-- > 0;) {
      const BlockId block(static_cast<BlockId::Index>(i));
      add(class_.blocks[block].body, runs_[block]);
    }
    add_kernels();
    return std::move(totals_);
  }

 private:
  void add(const std::vector<Instruction>& body, std::int64_t times) {
    if (times == 0) return;
    const auto factor = static_cast<double>(times);
    for (const Instruction& instruction : body) {
      std::visit(Visitor{
                     [&](const Compute& compute) { totals_.launches[compute.kernel] += times; },
                     [&](const Collective& collective) {
                       totals_.collective += factor * program_.comms[collective.comm].size;
                     },
                     [&](const Send& send) { totals_.point_to_point += factor * send.size; },
                     [&](const Update& update) {
                       if (!update.on_host)
                         totals_.updated += factor * (update.read + update.written);
                     },
                     [&](const Call& call) { runs_[call.block] += times; },
                     [&](const Loop& loop) { add(loop.body, times * loop.count); },
                     [](const auto&) {},
                 },
                 instruction.what);
    }
  }

  void add_kernels() {
    for (const KernelId id : program_.kernels.ids()) {
      const auto times = static_cast<double>(totals_.launches[id]);
      totals_.flop += times * program_.kernels[id].flop;
      totals_.model_flop += times * program_.kernels[id].model_flop;
      totals_.kernels += totals_.launches[id];
    }
  }

  const Program& program_;
  const RankClass& class_;
  IdVector<BlockId, std::int64_t> runs_;
  Totals totals_;
};

std::int64_t stored(const std::vector<Instruction>& body) {
  std::int64_t count = 0;
  for (const Instruction& instruction : body) {
    ++count;
    if (const Loop* loop = std::get_if<Loop>(&instruction.what)) count += stored(loop->body);
  }
  return count;
}

}  // namespace

Totals totals(const Program& program, const RankClass& rank_class) {
  return Counter(program, rank_class).count();
}

std::int64_t instruction_count(const Program& program) {
  std::int64_t count = 0;
  for (const RankClass& rank_class : program.classes) {
    count += stored(rank_class.step);
    for (const Block& block : rank_class.blocks) count += stored(block.body);
  }
  return count;
}

std::string_view name_of(MemoryTerm term) {
  switch (term) {
    case MemoryTerm::weights:
      return "weights";
    case MemoryTerm::gradients:
      return "gradients";
    case MemoryTerm::optimizer:
      return "optimizer";
    case MemoryTerm::activations:
      return "activations";
    case MemoryTerm::workspace:
      return "workspace";
    case MemoryTerm::logits:
      return "logits";
    case MemoryTerm::communication:
      return "communication";
    case MemoryTerm::framework:
      return "framework";
    case MemoryTerm::host:
      return "host";
  }
  return "";
}

std::string_view name_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return "all-reduce";
    case CollectiveOp::all_gather:
      return "all-gather";
    case CollectiveOp::reduce_scatter:
      return "reduce-scatter";
    case CollectiveOp::all_to_all:
      return "all-to-all";
    case CollectiveOp::broadcast:
      return "broadcast";
  }
  return "";
}

std::string_view name_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return "compute";
    case Stream::tensor:
      return "tensor";
    case Stream::data:
      return "data";
    case Stream::pipeline:
      return "pipeline";
    case Stream::context:
      return "context";
    case Stream::copy:
      return "copy";
  }
  return "";
}

}  // namespace orrery

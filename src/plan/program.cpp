#include "plan/program.h"

namespace orrery {
namespace {

template <class... F>
struct Visitor : F... {
  using F::operator()...;
};
template <class... F>
Visitor(F...) -> Visitor<F...>;

void add(Totals& sum, const Totals& part, double times) {
  sum.flop += part.flop * times;
  sum.model_flop += part.model_flop * times;
  sum.collective += part.collective * times;
  sum.point_to_point += part.point_to_point * times;
  sum.kernels += part.kernels * static_cast<std::int64_t>(times);
}

// Sums a class's instructions; a block's sum is taken once.
class Counter {
 public:
  Counter(const Program& program, const RankClass& rank_class)
      : program_(program), class_(rank_class) {
    // Blocks call only blocks before them.
    for (const BlockId block : class_.blocks.ids())
      blocks_.push_back(sum(class_.blocks[block].body));
  }

  Totals sum(const std::vector<Instruction>& body) const {
    Totals totals;
    for (const Instruction& instruction : body) count(instruction, totals);
    return totals;
  }

 private:
  void count(const Instruction& instruction, Totals& totals) const {
    std::visit(
        Visitor{
            [&](const Compute& compute) { count(program_.kernels[compute.kernel], totals); },
            [&](const Collective& collective) {
              totals.collective += program_.comms[collective.comm].size;
            },
            [&](const Send& send) { totals.point_to_point += send.size; },
            [&](const Call& call) { add(totals, blocks_[call.block], 1); },
            [&](const Loop& loop) { add(totals, sum(loop.body), static_cast<double>(loop.count)); },
            [](const auto&) {},
        },
        instruction.what);
  }

  static void count(const Kernel& kernel, Totals& totals) {
    totals.flop += kernel.flop;
    totals.model_flop += kernel.model_flop;
    ++totals.kernels;
  }

  const Program& program_;
  const RankClass& class_;
  IdVector<BlockId, Totals> blocks_;
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
  return Counter(program, rank_class).sum(rank_class.step);
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

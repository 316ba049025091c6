#include "cost/memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/error.h"

namespace orrery {
namespace {

static_assert(memory_terms == static_cast<std::size_t>(MemoryTerm::host) + 1);

Footprint& operator+=(Footprint& a, const Footprint& b) {
  for (std::size_t term = 0; term < memory_terms; ++term) a[term] += b[term];
  return a;
}
Footprint operator+(Footprint a, const Footprint& b) { return a += b; }
Footprint operator*(Footprint a, double count) {
  for (Bytes& bytes : a) bytes *= count;
  return a;
}

// Instances of one buffer: how many a body leaves behind and the fewest there were inside it.
struct Instances {
  std::int64_t net = 0, low = 0;
};

// What a body does to a footprint, whatever it finds there.
struct Effect {
  Footprint net{};
  Footprint peak{};  // at its first highest instant, relative to the start
  std::map<BufferId, Instances> buffers;

  void then(const Effect& next) {
    if (total(net + next.peak) > total(peak)) peak = net + next.peak;
    net += next.net;
    for (const auto& [buffer, after] : next.buffers) {
      Instances& here = buffers[buffer];
      here.low = std::min(here.low, here.net + after.low);
      here.net += after.net;
    }
  }
};

// A turn that ends higher than it began peaks in the last turn, any other in the first.
bool grows(const Effect& turn) { return total(turn.net) > Bytes(); }

Effect repeated(Effect turn, std::int64_t count) {
  const auto before_last = static_cast<double>(count - 1);
  if (grows(turn)) turn.peak = turn.net * before_last + turn.peak;
  turn.net = turn.net * static_cast<double>(count);
  for (auto& [buffer, instances] : turn.buffers) {
    instances.low = std::min(instances.low, instances.net * (count - 1) + instances.low);
    instances.net *= count;
  }
  return turn;
}

using Held = std::map<BufferId, std::int64_t>;  // instances

class Walk {
 public:
  explicit Walk(const RankClass& ranks) : ranks_(ranks), blocks_(ranks.blocks.size()) {}

  Effect effect(const std::vector<Instruction>& body) {
    Effect all;
    for (const Instruction& instruction : body) {
      if (const auto* call = std::get_if<Call>(&instruction.what)) {
        all.then(block(call->block));  // the same again and again: not copied
      } else {
        all.then(effect(instruction));
      }
    }
    return all;
  }

  // Adds to `held` what the body has allocated and not freed at its first highest instant.
  void hold_until_peak(const std::vector<Instruction>& body, Held& held) {
    Effect before;
    const Instruction* highest = nullptr;
    Held at_highest;
    for (const Instruction& instruction : body) {
      const Effect next = effect(instruction);
      if (total(before.net + next.peak) > total(before.peak)) {
        highest = &instruction;
        at_highest = net(before);
      }
      before.then(next);
    }
    if (!highest) return;  // it never holds more than at its start
    add(held, at_highest);
    hold_until_peak(*highest, held);
  }

 private:
  Effect effect(const Instruction& instruction) {
    return std::visit(
        [&](const auto& what) {
          using What = std::decay_t<decltype(what)>;
          if constexpr (std::is_same_v<What, Alloc>) {
            return change(what.buffer, what.count);
          } else if constexpr (std::is_same_v<What, Free>) {
            return change(what.buffer, -what.count);
          } else if constexpr (std::is_same_v<What, Move>) {
            Effect moved = change(what.from, -1);
            moved.then(change(what.to, 1));
            return moved;
          } else if constexpr (std::is_same_v<What, Call>) {
            return block(what.block);
          } else if constexpr (std::is_same_v<What, Loop>) {
            EXPECT(what.count >= 0);
            return what.count > 0 ? repeated(effect(what.body), what.count) : Effect();
          } else {
            return Effect();
          }
        },
        instruction.what);
  }

  void hold_until_peak(const Instruction& instruction, Held& held) {
    if (const auto* alloc = std::get_if<Alloc>(&instruction.what)) {
      held[alloc->buffer] += alloc->count;
    } else if (const auto* call = std::get_if<Call>(&instruction.what)) {
      hold_until_peak(ranks_.blocks[call->block].body, held);
    } else if (const auto* loop = std::get_if<Loop>(&instruction.what)) {
      const Effect turn = effect(loop->body);
      if (grows(turn)) {
        for (const auto& [buffer, count] : net(turn)) held[buffer] += count * (loop->count - 1);
      }
      hold_until_peak(loop->body, held);
    }
  }

  static Held net(const Effect& effect) {
    Held held;
    for (const auto& [buffer, instances] : effect.buffers) held[buffer] = instances.net;
    return held;
  }
  static void add(Held& held, const Held& more) {
    for (const auto& [buffer, count] : more) held[buffer] += count;
  }

  Effect change(BufferId id, std::int64_t count) const {
    const Buffer& buffer = ranks_.buffers[id];
    Effect effect;
    effect.net[static_cast<std::size_t>(buffer.term)] = buffer.size * static_cast<double>(count);
    if (count > 0) effect.peak = effect.net;
    effect.buffers[id] = {count, std::min<std::int64_t>(count, 0)};
    return effect;
  }

  const Effect& block(BlockId id) {
    std::optional<Effect>& known = blocks_[id];
    if (!known) {
      const bool calls_itself = std::find(open_.begin(), open_.end(), id) != open_.end();
      EXPECT(!calls_itself);
      open_.push_back(id);
      known = effect(ranks_.blocks[id].body);
      open_.pop_back();
    }
    return *known;
  }

  const RankClass& ranks_;
  IdVector<BlockId, std::optional<Effect>> blocks_;
  std::vector<BlockId> open_;
};

}  // namespace

Bytes total(const Footprint& footprint) {
  Bytes sum;
  for (const Bytes bytes : footprint) sum += bytes;
  return sum - footprint[static_cast<std::size_t>(MemoryTerm::host)];
}

Peak peak_memory(const Program& program) {
  Peak peak{};
  for (const ClassId id : program.classes.ids()) {
    const RankClass& ranks = program.classes[id];
    const Effect step = Walk(ranks).effect(ranks.step);
    for (const auto& [buffer, instances] : step.buffers) {
      const bool freed_more_than_allocated = instances.low < 0;
      EXPECT(!freed_more_than_allocated);
    }
    peak.by_class.push_back(step.peak);
    if (peak.at.is_none() || total(step.peak) > total(peak.footprint)) {
      peak.at = id;
      peak.footprint = step.peak;
    }
  }
  return peak;
}

std::vector<HeldBuffer> held_at_peak(const RankClass& ranks) {
  Held held;
  Walk(ranks).hold_until_peak(ranks.step, held);
  std::vector<HeldBuffer> list;
  for (const auto& [id, count] : held) {
    const Buffer& buffer = ranks.buffers[id];
    if (count == 0 || buffer.term == MemoryTerm::host) continue;
    list.push_back({buffer.name, buffer.term, count, buffer.size * static_cast<double>(count)});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const HeldBuffer& a, const HeldBuffer& b) { return a.size > b.size; });
  return list;
}

}  // namespace orrery

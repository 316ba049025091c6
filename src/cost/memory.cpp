#include "cost/memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/error.h"

namespace orrery {
namespace {

static_assert(memory_terms == static_cast<std::size_t>(MemoryTerm::framework) + 1);

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
Effect repeated(Effect turn, std::int64_t count) {
  const auto before_last = static_cast<double>(count - 1);
  if (total(turn.net) > Bytes()) turn.peak = turn.net * before_last + turn.peak;
  turn.net = turn.net * static_cast<double>(count);
  for (auto& [buffer, instances] : turn.buffers) {
    instances.low = std::min(instances.low, instances.net * (count - 1) + instances.low);
    instances.net *= count;
  }
  return turn;
}

class Walk {
 public:
  explicit Walk(const RankClass& ranks) : ranks_(ranks), blocks_(ranks.blocks.size()) {}

  Effect effect(const std::vector<Instruction>& body) {
    Effect all;
    for (const Instruction& instruction : body) {
      std::visit(
          [&](const auto& what) {
            using What = std::decay_t<decltype(what)>;
            if constexpr (std::is_same_v<What, Alloc>) {
              all.then(change(what.buffer, what.count));
            } else if constexpr (std::is_same_v<What, Free>) {
              all.then(change(what.buffer, -what.count));
            } else if constexpr (std::is_same_v<What, Call>) {
              all.then(block(what.block));
            } else if constexpr (std::is_same_v<What, Loop>) {
              EXPECT(what.count >= 0);
              if (what.count > 0) all.then(repeated(effect(what.body), what.count));
            }
          },
          instruction.what);
    }
    return all;
  }

 private:
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
  return sum;
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

}  // namespace orrery

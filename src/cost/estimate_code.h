// One class's instructions with prices filled in and names resolved: what estimate() plays.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost/estimate.h"

namespace orrery {

// A clock: the streams' first, then the events.
using Slot = std::uint32_t;
inline constexpr Slot compute_slot = static_cast<Slot>(Stream::compute);
inline constexpr Slot pipeline_slot = static_cast<Slot>(Stream::pipeline);
inline constexpr Slot stream_slots = static_cast<Slot>(Stream::copy) + 1;

struct BodyTag;
using BodyId = Id<BodyTag>;

struct Line {
  enum class Kind { work, send, recv, loop, call };
  Kind kind;
  Slot stream;
  std::vector<Slot> wait;
  std::optional<Slot> signal;

  Seconds duration, stolen;    // work, send
  Seconds Breakdown::*part{};  // of the compute stream's time that the duration belongs to
  ClassId peer;                // send, recv
  std::int32_t channel = 0;
  Bytes size;
  BodyId body;  // loop, call
  std::int64_t count = 1;
};

struct PricedBody {
  std::vector<Line> lines;
  bool sends = false;         // or receives, here or in what it calls
  std::int64_t kernels = 0;   // launched, loops unrolled
  std::vector<Slot> touches;  // clocks it may move, ascending
};

struct Code {
  IdVector<BodyId, PricedBody> bodies;
  BodyId step;
  Slot slots;
};

Code code_of(const RankClass&, const Prices&);

}  // namespace orrery

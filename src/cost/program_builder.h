// Programs by hand, for tests: kernels and collectives are added with their prices.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cost/estimate.h"
#include "plan/program.h"

namespace orrery::testing {

using Body = std::vector<Instruction>;

struct ProgramBuilder {
  Program program{};
  Prices prices = free_prices();

  // Nothing but kernels and collectives takes time.
  static Prices free_prices() {
    const BytesPerSecond endless(1e30);
    Prices free{};
    free.point_to_point = free.host = free.update = endless;
    return free;
  }

  ClassId add_class(std::string name = "stage") {
    RankClass ranks{};
    ranks.name = std::move(name);
    ranks.ranks = 1;
    ranks.stage = static_cast<std::int64_t>(program.classes.size());
    return program.classes.push_back(std::move(ranks));
  }
  KernelId kernel(Seconds duration) {
    program.kernels.push_back(Kernel{});
    return prices.kernels.push_back(duration);
  }
  CommId comm(Seconds duration, Seconds stolen = Seconds()) {
    program.comms.push_back(Comm{});
    return prices.comms.push_back({duration, stolen});
  }
  BufferId buffer(ClassId id, MemoryTerm term, Bytes size) {
    return program.classes[id].buffers.push_back({"buffer", term, size, Precision::bf16});
  }
  BlockId block(ClassId id, Body body) {
    return program.classes[id].blocks.push_back({"block", std::move(body)});
  }
  EventId event(ClassId id) {
    return EventId(static_cast<std::uint32_t>(program.classes[id].events++));
  }
  Body& step(ClassId id) { return program.classes[id].step; }

  Estimate estimated() const { return estimate(program, prices); }
};

inline Instruction compute(KernelId kernel, std::vector<EventId> wait = {}, EventId signal = {}) {
  return {Compute{kernel, {}, {}}, Stream::compute, std::move(wait), signal};
}
inline Instruction collective(CommId comm, Stream stream, std::vector<EventId> wait = {},
                              EventId signal = {}) {
  return {Collective{comm, {}}, stream, std::move(wait), signal};
}
inline Instruction send(ClassId to, std::int32_t channel, Bytes size,
                        std::vector<EventId> wait = {}) {
  return {Send{to, channel, size, {}}, Stream::pipeline, std::move(wait), {}};
}
inline Instruction recv(ClassId from, std::int32_t channel, Bytes size, EventId signal) {
  return {Recv{from, channel, size, {}}, Stream::pipeline, {}, signal};
}
inline Instruction call(BlockId block, std::vector<EventId> wait = {}, EventId signal = {}) {
  return {Call{block}, Stream::compute, std::move(wait), signal};
}
inline Instruction loop(std::int64_t count, Body body) { return {Loop{count, std::move(body)}}; }
inline Instruction alloc(BufferId buffer, std::int64_t count = 1) { return {Alloc{buffer, count}}; }
inline Instruction release(BufferId buffer, std::int64_t count = 1) {
  return {Free{buffer, count}};
}

}  // namespace orrery::testing

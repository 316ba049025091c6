#include "cost/estimate_code.h"

#include <algorithm>
#include <set>
#include <variant>

#include "core/error.h"

namespace orrery {
namespace {

Seconds at_rate(Bytes size, BytesPerSecond rate) {
  if (size == Bytes()) return Seconds();
  EXPECT(rate > BytesPerSecond());
  return size / rate;
}

class Compiler {
 public:
  Compiler(const RankClass& ranks, const Prices& prices)
      : ranks_(ranks), prices_(prices), blocks_(ranks.blocks.size()) {}

  Code code() {
    code_.step = body(ranks_.step);
    code_.slots = stream_slots + static_cast<Slot>(ranks_.events);
    return std::move(code_);
  }

 private:
  BodyId body(const std::vector<Instruction>& instructions) {
    PricedBody body;
    std::set<Slot> touches;
    for (const Instruction& instruction : instructions) {
      if (costs_nothing(instruction)) continue;
      Line line = std::visit([&](const auto& what) { return priced(what); }, instruction.what);
      line.stream = static_cast<Slot>(instruction.stream);
      for (const EventId event : instruction.wait) line.wait.push_back(slot_of(event));
      if (instruction.signal) line.signal = slot_of(instruction.signal);
      count(line, launches(instruction), body, touches);
      body.lines.push_back(std::move(line));
    }
    body.touches.assign(touches.begin(), touches.end());
    return code_.bodies.push_back(std::move(body));
  }

  static bool costs_nothing(const Instruction& instruction) {
    const bool memory = std::holds_alternative<Alloc>(instruction.what) ||
                        std::holds_alternative<Free>(instruction.what) ||
                        std::holds_alternative<Move>(instruction.what);
    return memory && instruction.wait.empty() && instruction.signal.is_none();
  }

  std::int64_t launches(const Instruction& instruction) const {
    const Compute* compute = std::get_if<Compute>(&instruction.what);
    if (!compute) return 0;
    return prices_.launches.empty() ? 1 : prices_.launches[compute->kernel];
  }

  void count(const Line& line, std::int64_t launched, PricedBody& body,
             std::set<Slot>& touches) const {
    touches.insert(line.stream);
    if (line.signal) touches.insert(*line.signal);
    if (line.stolen > Seconds()) touches.insert(compute_slot);
    body.kernels += launched;
    if (line.kind == Line::Kind::send || line.kind == Line::Kind::recv) body.sends = true;
    if (line.body.is_none() || line.count == 0) return;
    const PricedBody& inner = code_.bodies[line.body];
    body.sends |= inner.sends;
    body.kernels += inner.kernels * line.count;
    touches.insert(inner.touches.begin(), inner.touches.end());
    if (inner.kernels > 0) touches.insert(compute_slot);
  }

  Slot slot_of(EventId event) const {
    EXPECT(event.index() < static_cast<std::uint32_t>(ranks_.events));
    return stream_slots + event.index();
  }

  static Line work(Seconds duration, Seconds Breakdown::*part) {
    Line line{};
    line.kind = Line::Kind::work;
    line.duration = duration;
    line.part = part;
    return line;
  }
  Line priced(const Compute& compute) const {
    return work(prices_.kernels[compute.kernel], &Breakdown::compute);
  }
  Line priced(const Collective& collective) const {
    const Price& price = prices_.comms[collective.comm];
    Line line = work(price.duration, &Breakdown::exposed_comm);
    line.stolen = price.stolen;
    return line;
  }
  Line priced(const Copy& copy) const {
    const BytesPerSecond rate = copy.drives ? std::min(prices_.host, prices_.drives) : prices_.host;
    return work(prices_.host_latency + at_rate(copy.size, rate), &Breakdown::exposed_comm);
  }
  Line priced(const Update& update) const {
    const BytesPerSecond rate = update.drives    ? std::min(prices_.host_update, prices_.drives)
                                : update.on_host ? prices_.host_update
                                                 : prices_.update;
    return work(at_rate(update.read + update.written, rate), &Breakdown::optimizer);
  }
  static Line priced(const Alloc&) { return work(Seconds(), &Breakdown::overhead); }
  static Line priced(const Move&) { return work(Seconds(), &Breakdown::overhead); }
  static Line priced(const Free&) { return work(Seconds(), &Breakdown::overhead); }

  Line priced(const Send& send) const {
    const bool within_rank = send.size == Bytes();
    const Seconds duration =
        prices_.point_to_point_latency + at_rate(send.size, prices_.point_to_point);
    Line line = work(within_rank ? Seconds() : duration, &Breakdown::exposed_comm);
    line.kind = Line::Kind::send;
    line.peer = send.to;
    line.channel = send.channel;
    line.size = send.size;
    return line;
  }
  static Line priced(const Recv& recv) {
    Line line{};
    line.kind = Line::Kind::recv;
    line.peer = recv.from;
    line.channel = recv.channel;
    line.size = recv.size;
    return line;
  }
  Line priced(const Loop& loop) {
    EXPECT(loop.count >= 0);
    Line line{};
    line.kind = Line::Kind::loop;
    line.body = body(loop.body);
    line.count = loop.count;
    return line;
  }
  Line priced(const Call& call) {
    Line line{};
    line.kind = Line::Kind::call;
    line.body = block(call.block);
    return line;
  }

  BodyId block(BlockId id) {
    if (blocks_[id].is_none()) {
      const bool calls_itself = std::find(open_.begin(), open_.end(), id) != open_.end();
      EXPECT(!calls_itself);
      open_.push_back(id);
      blocks_[id] = body(ranks_.blocks[id].body);
      open_.pop_back();
    }
    return blocks_[id];
  }

  const RankClass& ranks_;
  const Prices& prices_;
  Code code_;
  IdVector<BlockId, BodyId> blocks_;
  std::vector<BlockId> open_;
};

}  // namespace

Code code_of(const RankClass& ranks, const Prices& prices) {
  return Compiler(ranks, prices).code();
}

}  // namespace orrery

#include "cost/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "core/error.h"
#include "cost/program_builder.h"

namespace orrery {
namespace {

using testing::alloc;
using testing::Body;
using testing::call;
using testing::collective;
using testing::compute;
using testing::loop;
using testing::ProgramBuilder;
using testing::recv;
using testing::send;

double sum(const Breakdown& b) {
  return (b.compute + b.exposed_comm + b.bubble + b.optimizer + b.overhead).value();
}

#define EXPECT_CLOSE(a, b) EXPECT_NEAR(a, b, 1e-12 * std::max(1.0, std::abs(b)))

// --- one class ----------------------------------------------------------------------------------

TEST(Estimate, KernelsOfOneStreamAddUp) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const KernelId kernel = builder.kernel(Seconds(2));
  builder.step(id) = {compute(kernel), loop(3, {compute(kernel)})};
  EXPECT_EQ(builder.estimated().step, Seconds(8));
  EXPECT_EQ(builder.estimated().busy[id], Seconds(8));
}

TEST(Estimate, AHiddenCollectiveCostsWhatItSteals) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const KernelId kernel = builder.kernel(Seconds(5));
  const CommId comm = builder.comm(Seconds(4), Seconds(1));
  const EventId event = builder.event(id);
  builder.step(id) = {collective(comm, Stream::data, {}, event), compute(kernel),
                      compute(kernel, {event})};
  const Estimate estimate = builder.estimated();
  EXPECT_EQ(estimate.step, Seconds(11));
  EXPECT_EQ(estimate.breakdown.compute, Seconds(10));
  EXPECT_EQ(estimate.breakdown.exposed_comm, Seconds(1));
}

TEST(Estimate, AnExposedCollectiveIsIdleTime) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const KernelId kernel = builder.kernel(Seconds(5));
  const CommId comm = builder.comm(Seconds(7));
  const EventId made = builder.event(id), reduced = builder.event(id);
  builder.step(id) = {
      loop(10, {compute(kernel, {}, made), collective(comm, Stream::tensor, {made}, reduced),
                compute(kernel, {reduced})}),
      collective(comm, Stream::data, {made})};
  const Estimate estimate = builder.estimated();
  EXPECT_EQ(estimate.step, Seconds(170));
  EXPECT_EQ(estimate.breakdown.compute, Seconds(100));
  EXPECT_EQ(estimate.breakdown.exposed_comm, Seconds(70));
}

TEST(Estimate, WhatOutlastsTheComputeStreamIsExposed) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const EventId made = builder.event(id);
  builder.step(id) = {compute(builder.kernel(Seconds(3)), {}, made),
                      collective(builder.comm(Seconds(4)), Stream::data, {made})};
  EXPECT_EQ(builder.estimated().step, Seconds(7));
  EXPECT_EQ(builder.estimated().breakdown.exposed_comm, Seconds(4));
}

TEST(Estimate, AnEventNeverSignalledDoesNotBlock) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const EventId event = builder.event(id);
  builder.step(id) = {loop(4, {compute(builder.kernel(Seconds(1)), {event})})};
  EXPECT_EQ(builder.estimated().step, Seconds(4));
}

TEST(Estimate, CopiesAndUpdatesGoByBytes) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  builder.prices.host = BytesPerSecond(10);
  builder.prices.host_latency = Seconds(1);
  builder.prices.update = BytesPerSecond(100);
  builder.prices.step_overhead = Seconds(3);
  builder.step(id) = {Instruction{Copy{Bytes(20), true}},
                      Instruction{Update{7, Bytes(300), Bytes(200)}}};
  const Estimate estimate = builder.estimated();
  EXPECT_EQ(estimate.step, Seconds(11));
  EXPECT_EQ(estimate.breakdown.exposed_comm, Seconds(3));
  EXPECT_EQ(estimate.breakdown.optimizer, Seconds(5));
  EXPECT_EQ(estimate.breakdown.overhead, Seconds(3));
  EXPECT_EQ(estimate.busy[id], Seconds(5));
}

TEST(Estimate, ABlockTakesItsLaunchesAtLeast) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  builder.prices.launch = Seconds(2);
  const KernelId fast = builder.kernel(Seconds(1)), slow = builder.kernel(Seconds(5));
  const BlockId launches = builder.block(id, {loop(10, {compute(fast)})});
  const BlockId device = builder.block(id, {loop(10, {compute(slow)})});
  builder.step(id) = {call(launches), call(device), loop(3, {call(launches)})};
  const Estimate estimate = builder.estimated();
  EXPECT_EQ(estimate.step, Seconds(20 + 50 + 60));
  EXPECT_EQ(estimate.breakdown.overhead, Seconds(40));
}

// --- classes ------------------------------------------------------------------------------------

TEST(Estimate, WaitingBeyondTheTransferIsBubble) {
  ProgramBuilder builder;
  const ClassId first = builder.add_class(), second = builder.add_class();
  builder.prices.point_to_point = BytesPerSecond(10);
  builder.prices.point_to_point_latency = Seconds(1);
  const KernelId kernel = builder.kernel(Seconds(5));
  const EventId made = builder.event(first), arrived = builder.event(second);
  builder.step(second) = {compute(kernel), recv(first, 0, Bytes(20), arrived),
                          compute(kernel, {arrived})};
  builder.step(first) = {compute(kernel), compute(kernel, {}, made),
                         send(second, 0, Bytes(20), {made})};
  const Estimate estimate = builder.estimated();
  EXPECT_EQ(estimate.step, Seconds(10 + 3 + 5));
  EXPECT_EQ(estimate.breakdown.bubble, Seconds(5));
  EXPECT_EQ(estimate.breakdown.exposed_comm, Seconds(3));
  EXPECT_EQ(estimate.breakdown.compute, Seconds(10));
}

TEST(Estimate, EqualWaitsInABlockKeepTheirOwnReasons) {
  for (const bool message_first : {true, false}) {
    ProgramBuilder builder;
    const ClassId first = builder.add_class(), second = builder.add_class();
    const KernelId one = builder.kernel(Seconds(1)), ten = builder.kernel(Seconds(10));
    const CommId comm = builder.comm(Seconds(10));
    const EventId made = builder.event(first), ready = builder.event(second);
    builder.step(first) = {loop(message_first ? 1 : 2, {compute(ten), compute(one, {}, made)}),
                           send(second, 0, Bytes(1), {made})};
    const Instruction block = call(builder.block(second, {compute(one, {ready})}));
    const Instruction reduce = collective(comm, Stream::tensor, {builder.event(second)}, ready);
    const Instruction begin = compute(one, {}, EventId(1));
    const Instruction receive = recv(first, 0, Bytes(1), ready);
    if (message_first)
      builder.step(second) = {begin, receive, block, begin, reduce, block};
    else
      builder.step(second) = {begin, reduce, block, receive, block};
    const Estimate estimate = builder.estimated();
    EXPECT_EQ(estimate.classes[second].exposed_comm, Seconds(10)) << message_first;
    EXPECT_EQ(estimate.classes[second].bubble, Seconds(10)) << message_first;
  }
}

TEST(Estimate, ASendHoldsThePipelineStreamOnly) {
  ProgramBuilder builder;
  const ClassId first = builder.add_class(), second = builder.add_class();
  builder.prices.point_to_point = BytesPerSecond(1);
  const KernelId kernel = builder.kernel(Seconds(5));
  const EventId one = builder.event(second), two = builder.event(second);
  builder.step(first) = {send(second, 0, Bytes(3)), send(second, 0, Bytes(3)), compute(kernel)};
  builder.step(second) = {recv(first, 0, Bytes(3), one), recv(first, 0, Bytes(3), two),
                          compute(kernel, {one, two})};
  const Estimate estimate = builder.estimated();
  EXPECT_EQ(estimate.step, Seconds(11));
  builder.step(first)[0].stream = builder.step(first)[1].stream = Stream::copy;
  EXPECT_EQ(builder.estimated().step, Seconds(8));
}

TEST(Estimate, ADeadlockBreaksAContract) {
  ProgramBuilder builder;
  const ClassId a = builder.add_class(), b = builder.add_class();
  builder.step(a) = {recv(b, 0, Bytes(1), {}), send(b, 0, Bytes(1))};
  builder.step(b) = {recv(a, 0, Bytes(1), {}), send(a, 0, Bytes(1))};
  EXPECT_THROW(builder.estimated(), ContractError);
}

TEST(Estimate, ALostMessageOrOneOfAnotherSizeBreaksAContract) {
  ProgramBuilder builder;
  const ClassId a = builder.add_class(), b = builder.add_class();
  builder.step(a) = {send(b, 0, Bytes(1))};
  EXPECT_THROW(builder.estimated(), ContractError);
  builder.step(b) = {recv(a, 0, Bytes(2), {})};
  EXPECT_THROW(builder.estimated(), ContractError);
}

// --- laws of pipelines --------------------------------------------------------------------------

struct Cell {
  bool forward;
  int chunk;
};

// Megatron's orders: chunk-major groups of p micro-batches, warm-up, one forward one backward,
// rest.
std::vector<Cell> order_1f1b(int p, int v, int m, int stage) {
  std::vector<Cell> forwards, backwards, order;
  for (int start = 0; start < m; start += p)
    for (int chunk = 0; chunk < v; ++chunk)
      for (int i = start; i < std::min(m, start + p); ++i) {
        forwards.push_back({true, chunk});
        backwards.push_back({false, v - 1 - chunk});
      }
  const int warm_up = std::min(m * v, v == 1 ? p - stage - 1 : 2 * (p - stage - 1) + (v - 1) * p);
  std::size_t f = 0, b = 0;
  while (f < static_cast<std::size_t>(warm_up)) order.push_back(forwards[f++]);
  while (f < forwards.size()) {
    order.push_back(forwards[f++]);
    order.push_back(backwards[b++]);
  }
  while (b < backwards.size()) order.push_back(backwards[b++]);
  return order;
}

std::vector<Cell> order_gpipe(int, int v, int m, int) {
  std::vector<Cell> order;
  for (int chunk = 0; chunk < v; ++chunk) order.insert(order.end(), m, {true, chunk});
  for (int chunk = v - 1; chunk >= 0; --chunk) order.insert(order.end(), m, {false, chunk});
  return order;
}

using Order = std::vector<Cell>(int p, int v, int m, int stage);

// `scale` multiplies the durations of a stage; durations are of a whole stage, all chunks.
ProgramBuilder pipeline(int p, int v, int m, Seconds forward, Seconds backward, Order& order,
                        const std::vector<double>& scale = {}, Bytes message = Bytes()) {
  ProgramBuilder builder;
  for (int s = 0; s < p; ++s) builder.add_class();
  for (int s = 0; s < p; ++s) {
    const ClassId id(static_cast<std::uint32_t>(s));
    const double part = (scale.empty() ? 1 : scale[static_cast<std::size_t>(s)]) / v / 4;
    const KernelId kernels[] = {builder.kernel(backward * part), builder.kernel(forward * part)};
    const EventId arrived = builder.event(id), made = builder.event(id);
    const BlockId blocks[] = {builder.block(id, {loop(4, {compute(kernels[0])})}),
                              builder.block(id, {loop(4, {compute(kernels[1])})})};
    for (const Cell cell : order(p, v, m, s)) {
      const int towards = cell.forward ? 1 : -1;
      const int position = cell.chunk * p + s, last = p * v - 1;
      const auto neighbour = [&](int other) {
        return ClassId(static_cast<std::uint32_t>((other + p) % p));
      };
      // a channel is a direction and the virtual stage that receives
      const auto channel = [&](int receiver) { return 2 * receiver + (cell.forward ? 1 : 0); };
      Body& step = builder.step(id);
      const int from = position - towards, to = position + towards;
      const bool receives = from >= 0 && from <= last, sends = to >= 0 && to <= last;
      if (receives && p > 1)
        step.push_back(recv(neighbour(from), channel(position), message, arrived));
      step.push_back(call(blocks[cell.forward],
                          receives ? std::vector{arrived} : std::vector<EventId>{}, made));
      if (sends && p > 1) step.push_back(send(neighbour(to), channel(to), message, {made}));
    }
  }
  return builder;
}

struct Shape4 {
  int p, v, m;
};

TEST(Pipeline, OneForwardOneBackwardTakesItsClosedForm) {
  for (const auto [p, v, m] : {Shape4{1, 1, 3}, {2, 1, 2}, {4, 1, 8}, {4, 1, 2}, {8, 1, 64}}) {
    const Estimate estimate = pipeline(p, v, m, Seconds(1), Seconds(2), order_1f1b).estimated();
    EXPECT_CLOSE(estimate.step.value(), 3.0 * (m + p - 1));
    EXPECT_CLOSE(estimate.breakdown.compute.value(), 3.0 * m);
    EXPECT_CLOSE(estimate.breakdown.bubble.value(), 3.0 * (p - 1));
  }
}

TEST(Pipeline, GPipeTakesTheSame) {
  for (const auto [p, v, m] : {Shape4{2, 1, 2}, {4, 1, 8}, {8, 1, 3}})
    EXPECT_CLOSE(pipeline(p, v, m, Seconds(1), Seconds(2), order_gpipe).estimated().step.value(),
                 3.0 * (m + p - 1));
}

TEST(Pipeline, InterleavingDividesTheBubble) {
  for (const auto [p, v, m] : {Shape4{2, 2, 4}, {4, 2, 8}, {4, 3, 16}, {8, 4, 32}}) {
    const Estimate estimate = pipeline(p, v, m, Seconds(1), Seconds(2), order_1f1b).estimated();
    EXPECT_CLOSE(estimate.step.value(), 3.0 * (m + (p - 1.0) / v));
    EXPECT_CLOSE(sum(estimate.breakdown), estimate.step.value());
  }
}

TEST(Pipeline, NoStepBeatsItsSlowestStage) {
  const std::vector<double> scale = {1, 1.5, 0.5, 1.2};
  for (Order* order : {&order_1f1b, &order_gpipe}) {
    const Estimate estimate = pipeline(4, 1, 12, Seconds(1), Seconds(2), *order, scale).estimated();
    const double before_and_after = 3;  // the first stage's share of one micro-batch
    EXPECT_GE(estimate.step.value(), 3 * 1.5 * 12 + before_and_after - 1e-9);
    EXPECT_CLOSE(sum(estimate.breakdown), estimate.step.value());
    for (const Seconds busy : estimate.busy) EXPECT_GE(estimate.step, busy);
  }
}

TEST(Pipeline, MoreBandwidthNeverHurts) {
  Seconds before(1e30);
  for (const double rate : {0.5, 1.0, 2.0, 5.0, 100.0}) {
    ProgramBuilder builder = pipeline(4, 2, 8, Seconds(1), Seconds(2), order_1f1b, {}, Bytes(1));
    builder.prices.point_to_point = BytesPerSecond(rate);
    const Estimate estimate = builder.estimated();
    EXPECT_LE(estimate.step, before);
    EXPECT_CLOSE(sum(estimate.breakdown), estimate.step.value());
    before = estimate.step;
  }
  EXPECT_CLOSE(pipeline(4, 2, 8, Seconds(1), Seconds(2), order_1f1b).estimated().step.value(),
               3 * (8 + 1.5));
}

// --- against the obvious walk -------------------------------------------------------------------

// Loops and calls unrolled to single instructions, and marks where calls begin and end.
struct Unrolled {
  const Instruction* instruction;
  enum { plain, enter, leave } mark = plain;
};

void unroll(const RankClass& ranks, const Body& body, std::vector<Unrolled>& into) {
  for (const Instruction& instruction : body) {
    const auto* c = std::get_if<Call>(&instruction.what);
    const auto* l = std::get_if<Loop>(&instruction.what);
    if (!c && !l) {
      into.push_back({&instruction});
      continue;
    }
    into.push_back({&instruction, Unrolled::enter});
    for (std::int64_t turn = 0; turn < (l ? l->count : 1); ++turn)
      unroll(ranks, l ? l->body : ranks.blocks[c->block].body, into);
    into.push_back({&instruction, Unrolled::leave});
  }
}

class Naive {
 public:
  Naive(const Program& program, const Prices& prices) : program_(program), prices_(prices) {
    for (const RankClass& ranks : program.classes) {
      Player player;
      unroll(ranks, ranks.step, player.instructions);
      player.events.resize(static_cast<std::size_t>(ranks.events));
      players_.push_back(std::move(player));
    }
  }

  struct Answer {
    double step = 0;
    std::vector<double> bubbles;  // of each class, its idle end included
  };

  Answer answer() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const ClassId id : players_.ids())
        while (players_[id].next < players_[id].instructions.size() && play(id)) moved = true;
    }
    Answer answer;
    std::vector<double> ends;
    for (Player& player : players_) {
      Clock end;
      for (const Clock& stream : player.streams)
        if (stream.time > end.time) end = stream;
      player.idle_until(end);
      ends.push_back(end.time);
      answer.bubbles.push_back(player.bubble);
    }
    answer.step = *std::max_element(ends.begin(), ends.end());
    for (std::size_t i = 0; i < ends.size(); ++i) answer.bubbles[i] += answer.step - ends[i];
    answer.step += prices_.step_overhead.value();
    return answer;
  }

 private:
  struct Clock {
    double time = 0, peer = 0;  // before `peer` one waited for another class
  };
  struct Block {
    double start;
    std::int64_t kernels = 0;
  };
  struct Player {
    std::vector<Unrolled> instructions;
    std::size_t next = 0;
    std::array<Clock, static_cast<std::size_t>(Stream::copy) + 1> streams{};
    std::vector<Clock> events;
    std::vector<Block> blocks;
    double bubble = 0;

    void idle_until(const Clock& clock) {
      bubble += std::max(0.0, std::min(clock.peer, clock.time) - streams[0].time);
    }
  };

  bool play(ClassId id) {
    Player& player = players_[id];
    const auto [instruction, mark] = player.instructions[player.next];
    Clock& stream = player.streams[static_cast<std::size_t>(instruction->stream)];
    Clock& compute_stream = player.streams[0];
    Clock now = stream;
    if (mark != Unrolled::leave)
      for (const EventId event : instruction->wait)
        if (player.events[event.index()].time > now.time) now = player.events[event.index()];
    if (const auto* r = std::get_if<Recv>(&instruction->what)) {
      std::vector<Clock>& queue = mail_[{r->from, id, r->channel}];
      if (queue.empty()) return false;
      if (queue.front().time > now.time) now = queue.front();
      queue.erase(queue.begin());
    }
    if (&stream == &compute_stream) player.idle_until(now);
    if (const auto* k = std::get_if<Compute>(&instruction->what)) {
      now.time += prices_.kernels[k->kernel].value();
      for (Block& block : player.blocks) ++block.kernels;
    } else if (const auto* c = std::get_if<Collective>(&instruction->what)) {
      now.time += prices_.comms[c->comm].duration.value();
      if (&stream != &compute_stream) compute_stream.time += prices_.comms[c->comm].stolen.value();
    } else if (const auto* s = std::get_if<Send>(&instruction->what)) {
      const double arrival = now.time + prices_.point_to_point_latency.value() +
                             (s->size / prices_.point_to_point).value();
      mail_[{id, s->to, s->channel}].push_back({arrival, now.time});
      if (instruction->stream == Stream::pipeline) now.time = arrival;
    }
    stream = now;
    if (std::holds_alternative<Call>(instruction->what)) {
      if (mark == Unrolled::enter) {
        player.blocks.push_back({compute_stream.time});
      } else {
        const Block block = player.blocks.back();
        player.blocks.pop_back();
        const double launched =
            block.start + prices_.launch.value() * static_cast<double>(block.kernels);
        compute_stream.time = std::max(compute_stream.time, launched);
      }
    }
    if (mark != Unrolled::enter && instruction->signal)
      player.events[instruction->signal.index()] = stream;
    ++player.next;
    return true;
  }

  const Program& program_;
  const Prices& prices_;
  IdVector<ClassId, Player> players_;
  std::map<std::tuple<ClassId, ClassId, std::int32_t>, std::vector<Clock>> mail_;  // arrivals
};

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    for (int i = 0; i < 6; ++i) builder.kernel(duration());
    for (int i = 0; i < 4; ++i) builder.comm(duration(), below(3) ? Seconds() : duration() / 8);
    builder.prices.launch = Seconds(below(3) ? 0 : duration().value() / 4);
    builder.prices.step_overhead = duration();
    builder.prices.point_to_point = BytesPerSecond(4);
    builder.prices.point_to_point_latency = Seconds(0.25);
    const std::int64_t classes = 1 + below(3);
    for (std::int64_t c = 0; c < classes; ++c) {
      const ClassId id = builder.add_class();
      for (int i = 0; i < 5; ++i) builder.event(id);
      for (int i = 0; i < 3; ++i) {
        const BlockId block = builder.block(id, body(id, 2));
        callable_.push_back({id, block});
      }
    }
    for (int i = 0; i < 12; ++i) round(classes);
  }

  ProgramBuilder builder;

 private:
  // A message or some local work, so that program order never deadlocks.
  void round(std::int64_t classes) {
    const ClassId from = class_below(classes), to = class_below(classes);
    if (from != to && below(2)) {
      const auto channel = static_cast<std::int32_t>(below(2));
      const Bytes size(static_cast<double>(channel + 1));
      builder.step(from).push_back(send(to, channel, size, {event()}));
      if (below(4) == 0) builder.step(from).back().stream = Stream::copy;
      builder.step(to).push_back(recv(from, channel, size, event()));
    } else {
      for (Instruction& i : body(to, 3)) builder.step(to).push_back(std::move(i));
    }
  }

  Body body(ClassId id, int depth) {
    Body made;
    for (std::int64_t n = 1 + below(6); n > 0; --n) made.push_back(instruction(id, depth));
    return made;
  }

  Instruction instruction(ClassId id, int depth) {
    Instruction made = what(id, depth);
    for (std::int64_t n = below(3); n > 0; --n) made.wait.push_back(event());
    if (below(2)) made.signal = event();
    return made;
  }

  Instruction what(ClassId id, int depth) {
    const std::int64_t kind = below(8);
    if (kind == 0 && depth > 0) return loop(below(depth > 1 ? 6 : 40), body(id, depth - 1));
    if (kind == 1 && depth > 0) {
      for (const auto& [owner, block] : callable_)
        if (owner == id && below(2)) return call(block);
    }
    const Stream others[] = {Stream::tensor, Stream::data, Stream::copy, Stream::compute};
    if (kind < 5) return compute(KernelId(static_cast<std::uint32_t>(below(6))));
    return collective(CommId(static_cast<std::uint32_t>(below(4))), others[below(4)]);
  }

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % n); }
  ClassId class_below(std::int64_t n) { return ClassId(static_cast<std::uint32_t>(below(n))); }
  EventId event() { return EventId(static_cast<std::uint32_t>(below(5))); }
  Seconds duration() { return Seconds(std::uniform_real_distribution<>(0.05, 2)(random_)); }

  std::mt19937 random_;
  std::vector<std::pair<ClassId, BlockId>> callable_;
};

TEST(Estimate, FoldingEqualsTheUnrolledWalkOnRandomPrograms) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    const RandomProgram random(seed);
    const Estimate folded = random.builder.estimated();
    const auto [naive, bubbles] = Naive(random.builder.program, random.builder.prices).answer();
    ASSERT_NEAR(folded.step.value(), naive, 1e-12 * naive) << "seed " << seed;
    for (std::size_t i = 0; i < bubbles.size(); ++i) {
      const Breakdown& of = folded.classes[ClassId(static_cast<std::uint32_t>(i))];
      ASSERT_NEAR(of.bubble.value(), bubbles[i], 1e-12 * naive) << "seed " << seed;
    }
    ASSERT_NEAR(sum(folded.breakdown), naive, 1e-12 * naive) << "seed " << seed;
    for (const Seconds busy : folded.busy) ASSERT_LE(busy.value(), naive * (1 + 1e-12));
  }
}

TEST(Estimate, AFasterNetworkNeverSlowsARandomProgram) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomProgram random(seed);
    const Seconds before = random.builder.estimated().step;
    random.builder.prices.point_to_point *= 2;
    for (Price& price : random.builder.prices.comms) price.duration *= 0.5;
    ASSERT_LE(random.builder.estimated().step, before * (1 + 1e-12)) << "seed " << seed;
  }
}

// --- speed --------------------------------------------------------------------------------------

TEST(Estimate, LayersAndLocalMicroBatchesCostNothing) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const KernelId kernel = builder.kernel(Seconds(5));
  const CommId comm = builder.comm(Seconds(7));
  const EventId made = builder.event(id), reduced = builder.event(id);
  const std::int64_t many = 1'000'000'000;
  const BlockId block = builder.block(
      id, {loop(many, {compute(kernel, {}, made), collective(comm, Stream::tensor, {made}, reduced),
                       compute(kernel, {reduced})})});
  builder.step(id) = {loop(many, {call(block)})};
  EXPECT_NEAR(builder.estimated().step.value(), 17e18, 17e18 * 1e-9);
}

}  // namespace
}  // namespace orrery

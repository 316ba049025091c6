#include "cost/estimate_walk.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"

namespace orrery {
namespace {

constexpr std::array parts = {&Breakdown::compute, &Breakdown::exposed_comm, &Breakdown::bubble,
                              &Breakdown::optimizer, &Breakdown::overhead};

void add(Breakdown& to, const Breakdown& more, double times = 1) {
  for (const auto part : parts) to.*part += more.*part * times;
}
Breakdown difference(Breakdown after, const Breakdown& before) {
  for (const auto part : parts) after.*part -= before.*part;
  return after;
}

constexpr std::size_t memos_per_block = 4;

}  // namespace

void Mail::post(ClassId from, ClassId to, std::int32_t channel, const Message& message) {
  messages_[{from, to, channel}].push_back(message);
  addressees_.push_back(to);
}

bool Mail::waits(ClassId from, ClassId to, std::int32_t channel) const {
  return messages_.contains({from, to, channel});
}

Message Mail::take(ClassId from, ClassId to, std::int32_t channel) {
  const auto queue = messages_.find({from, to, channel});
  EXPECT(queue != messages_.end());
  const Message message = queue->second.front();
  queue->second.pop_front();
  if (queue->second.empty()) messages_.erase(queue);
  return message;
}

std::vector<ClassId> Mail::take_addressees() { return std::exchange(addressees_, {}); }

Walk::Walk(ClassId id, const RankClass& ranks, const Prices& prices, Mail& mail)
    : id_(id),
      code_(code_of(ranks, prices)),
      launch_(prices.launch),
      mail_(mail),
      clocks_(code_.slots),
      memos_(code_.bodies.size()) {
  frames_.push_back({&code_.bodies[code_.step], nullptr, 1, Seconds()});
}

void Walk::run() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.next == frame.body->lines.size()) {
      frame.next = 0;
      if (--frame.turns_left <= 0) close_frame();
      continue;
    }
    const Line& line = frame.body->lines[frame.next];
    if (line.kind == Line::Kind::recv && !mail_.waits(line.peer, id_, line.channel)) return;
    ++frame.next;
    if (line.body && line.count > 0 && code_.bodies[line.body].sends) {
      enter(line);
      frames_.push_back({&code_.bodies[line.body], &line, line.count, clocks_[compute_slot].time});
    } else {
      play(line);
    }
  }
}

void Walk::close_frame() {
  const Frame frame = frames_.back();
  frames_.pop_back();
  if (!frame.from) return finish();
  if (frame.from->kind == Line::Kind::call) launch_floor(frame.start, frame.body->kernels);
  leave(*frame.from);
}

void Walk::finish() {
  for (Slot stream = 0; stream < stream_slots; ++stream)
    if (clocks_[stream].time > end_.time) end_ = clocks_[stream];
  idle_until(end_);
}

// --- one instruction ----------------------------------------------------------------------------

void Walk::play(const Line& line) {
  switch (line.kind) {
    case Line::Kind::work:
      return work(line);
    case Line::Kind::send:
      return send(line);
    case Line::Kind::recv:
      return receive(line);
    case Line::Kind::loop:
      enter(line);
      repeat(code_.bodies[line.body], line.count);
      return leave(line);
    case Line::Kind::call:
      enter(line);
      call(line.body);
      return leave(line);
  }
}

void Walk::play(const PricedBody& body) {
  for (const Line& line : body.lines) play(line);
}

void Walk::work(const Line& line) {
  Moment now = start_of(line);
  if (line.stream == compute_slot) {
    idle_until(now);
    ledger_.*line.part += line.duration;
  } else if (line.stolen > Seconds()) {
    const Moment compute = clocks_[compute_slot];
    set(compute_slot, {compute.time + line.stolen, compute.peer});
    ledger_.exposed_comm += line.stolen;
  }
  now.time += line.duration;
  set(line.stream, now);
  signal(line, now);
}

void Walk::send(const Line& line) {
  Moment now = start_of(line);
  if (line.stream == compute_slot) idle_until(now);
  mail_.post(id_, line.peer, line.channel, {now.time + line.duration, line.duration, line.size});
  if (line.stream == pipeline_slot) now.time += line.duration;
  set(line.stream, now);
  signal(line, now);
}

void Walk::receive(const Line& line) {
  Moment now = start_of(line);
  const Message message = mail_.take(line.peer, id_, line.channel);
  EXPECT(message.size == line.size);
  if (message.arrival > now.time) now = {message.arrival, message.arrival - message.transfer};
  if (line.stream == compute_slot) idle_until(now);
  set(line.stream, now);
  signal(line, now);
}

void Walk::enter(const Line& line) {
  const Moment now = start_of(line);
  if (line.stream == compute_slot) idle_until(now);
  set(line.stream, now);
}

void Walk::leave(const Line& line) { signal(line, clocks_[line.stream]); }

Moment Walk::start_of(const Line& line) {
  Moment start = clocks_[line.stream];
  for (const Slot event : line.wait)
    if (clocks_[event].time > start.time) start = clocks_[event];
  if (recording_) note_reads(line, start.time);
  return start;
}

void Walk::set(Slot slot, Moment moment) {
  clocks_[slot] = moment;
  if (recording_) recording_->written[slot] = true;
}

void Walk::signal(const Line& line, Moment moment) {
  if (line.signal) set(*line.signal, moment);
}

// Moves only the ledger: the caller sets the clock.
void Walk::idle_until(Moment moment) {
  const Seconds now = clocks_[compute_slot].time;
  if (moment.time <= now) return;
  const Seconds idle = moment.time - now;
  const Seconds bubble = std::clamp(moment.peer - now, Seconds(), idle);
  ledger_.bubble += bubble;
  ledger_.exposed_comm += idle - bubble;
}

void Walk::launch_floor(Seconds start, std::int64_t kernels) {
  const Moment compute = clocks_[compute_slot];
  const Seconds floor = start + launch_ * static_cast<double>(kernels);
  if (floor <= compute.time) return;
  ledger_.overhead += floor - compute.time;
  set(compute_slot, {floor, compute.peer});
}

// --- loops --------------------------------------------------------------------------------------

// A turn maps clocks to clocks by maxima of sums. Two turns in a row that advance all they touch by
// the same amount show that no clock from outside the loop decides anything any more (it would not
// have advanced), so that every later turn does the same.
void Walk::repeat(const PricedBody& body, std::int64_t count) {
  const Seconds origin = recording_ ? Seconds() : clocks_[compute_slot].time;
  shift(-origin);  // small numbers round less
  std::optional<Seconds> last;
  for (std::int64_t turn = 1; turn <= count; ++turn) {
    const std::vector<Seconds> before = times(body.touches);
    const Breakdown ledger = ledger_;
    play(body);
    const std::optional<Seconds> advance = uniform_advance(body.touches, before);
    if (advance && last && abs(*advance - *last) <= rounding(body.touches)) {
      const auto left = static_cast<double>(count - turn);
      for (const Slot slot : body.touches) clocks_[slot].time += *advance * left;
      add(ledger_, difference(ledger_, ledger), left);
      break;
    }
    last = advance;
  }
  shift(origin);
}

void Walk::shift(Seconds by) {
  if (by == Seconds()) return;
  for (Moment& clock : clocks_) {
    clock.time += by;
    clock.peer += by;
  }
}

std::vector<Seconds> Walk::times(const std::vector<Slot>& slots) const {
  std::vector<Seconds> times;
  times.reserve(slots.size());
  for (const Slot slot : slots) times.push_back(clocks_[slot].time);
  return times;
}

std::optional<Seconds> Walk::uniform_advance(const std::vector<Slot>& slots,
                                             const std::vector<Seconds>& before) const {
  if (slots.empty()) return Seconds();
  const Seconds advance = clocks_[slots.front()].time - before.front();
  const Seconds tolerance = rounding(slots);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (abs(clocks_[slots[i]].time - before[i] - advance) > tolerance) return std::nullopt;
  return advance;
}

Seconds Walk::rounding(const std::vector<Slot>& slots) const {
  Seconds largest;
  for (const Slot slot : slots) largest = std::max(largest, abs(clocks_[slot].time));
  return largest * 2e-14;
}

// --- calls --------------------------------------------------------------------------------------

void Walk::call(BodyId id) {
  if (recording_) return play_block(code_.bodies[id]);
  const Seconds origin = clocks_[compute_slot].time;
  shift(-origin);
  if (const Memo* memo = recall(id))
    apply(*memo);
  else
    record(id);
  shift(origin);
}

void Walk::play_block(const PricedBody& body) {
  const Seconds start = clocks_[compute_slot].time;
  play(body);
  launch_floor(start, body.kernels);
}

const Walk::Memo* Walk::recall(BodyId id) const {
  for (const Memo& memo : memos_[id])
    if (fits(memo)) return &memo;
  return nullptr;
}

// Everything begins as it did then: what decided a start happens at the same time, everything else
// no later than the starts that it did not decide. And no waiting inside is for another class.
bool Walk::fits(const Memo& memo) const {
  return std::all_of(memo.reads.begin(), memo.reads.end(), [&](const Read& read) {
    const Moment& clock = clocks_[read.slot];
    if (!read.decided) return clock.time <= read.limit;
    return clock.peer <= Seconds() && abs(clock.time - read.found) <= memo.advance * 1e-12;
  });
}

void Walk::apply(const Memo& memo) {
  for (const auto& [slot, moment] : memo.writes) clocks_[slot] = moment;
  add(ledger_, memo.ledger);
}

void Walk::record(BodyId id) {
  const PricedBody& body = code_.bodies[id];
  const std::vector<Moment> found = clocks_;
  const Breakdown ledger = ledger_;
  recording_ = Recording{{}, std::vector<char>(clocks_.size())};
  play_block(body);
  Memo memo{
      std::move(recording_->reads), {}, difference(ledger_, ledger), clocks_[compute_slot].time};
  for (Read& read : memo.reads) read.found = found[read.slot].time;
  for (const Slot slot : body.touches)
    if (recording_->written[slot]) memo.writes.emplace_back(slot, clocks_[slot]);
  recording_.reset();
  const bool alone = std::all_of(memo.reads.begin(), memo.reads.end(), [&](const Read& read) {
    return !read.decided || found[read.slot].peer <= Seconds();
  });
  if (alone && memos_[id].size() < memos_per_block) memos_[id].push_back(std::move(memo));
}

// A start is decided by a clock from before the Call only if none of its own is as late.
void Walk::note_reads(const Line& line, Seconds start) {
  const auto outside = [&](Slot slot) {
    return slot != compute_slot && !recording_->written[slot];
  };
  const auto own = [&](Slot slot) { return !outside(slot) && clocks_[slot].time == start; };
  bool decided = !own(line.stream) && std::none_of(line.wait.begin(), line.wait.end(), own);
  const auto note = [&](Slot slot) {
    if (!outside(slot)) return;
    auto& reads = recording_->reads;
    auto read = std::find_if(reads.begin(), reads.end(),
                             [&](const Read& known) { return known.slot == slot; });
    if (read == reads.end()) read = reads.insert(read, {slot, Seconds(), start, false});
    read->limit = std::min(read->limit, start);
    if (decided && clocks_[slot].time == start) {
      read->decided = true;
      decided = false;
    }
  };
  note(line.stream);
  for (const Slot event : line.wait) note(event);
}

}  // namespace orrery

// One class of ranks, played along its own clocks until a message is missing.
#pragma once

#include <deque>
#include <map>
#include <tuple>

#include "cost/estimate_code.h"

namespace orrery {

// When a clock stands; up to `peer`, waiting for it is waiting for another class.
struct Moment {
  Seconds time, peer;
};

struct Message {
  Seconds arrival, transfer;
  Bytes size;
};

// Messages sent and not yet received.
class Mail {
 public:
  void post(ClassId from, ClassId to, std::int32_t channel, const Message&);
  bool waits(ClassId from, ClassId to, std::int32_t channel) const;
  Message take(ClassId from, ClassId to, std::int32_t channel);  // EXPECTs waits()
  bool empty() const { return messages_.empty(); }
  std::vector<ClassId> take_addressees();  // of all posted since the last call

 private:
  std::map<std::tuple<ClassId, ClassId, std::int32_t>, std::deque<Message>> messages_;
  std::vector<ClassId> addressees_;
};

class Walk {
 public:
  Walk(ClassId id, const RankClass& ranks, const Prices& prices, Mail& mail);

  void run();  // to the end, or to a Recv without its message
  bool done() const { return frames_.empty(); }

  // Of a walk that is done.
  Seconds end() const { return end_.time; }
  Seconds busy() const { return ledger_.compute + ledger_.optimizer; }
  const Breakdown& breakdown() const { return ledger_; }  // without the step's fixed overhead

 private:
  // A body that is being played instruction by instruction, since it sends or receives.
  struct Frame {
    const PricedBody* body;
    const Line* from;  // none: the step
    std::int64_t turns_left;
    Seconds start;  // of the compute stream
    std::size_t next = 0;
  };
  // What a Call without messages did, and from which clocks it would do the same again; all
  // relative to the compute stream's clock at its start.
  struct Read {
    Slot slot;
    Seconds found, limit;
    bool decided;  // something began exactly when it happened
  };
  struct Memo {
    std::vector<Read> reads;
    std::vector<std::pair<Slot, Moment>> writes;
    Breakdown ledger;
    Seconds advance;
  };
  struct Recording {
    std::vector<Read> reads;
    std::vector<char> written;  // by slot
  };

  void play(const Line&);
  void play(const PricedBody&);
  void work(const Line&);
  void send(const Line&);
  void receive(const Line&);
  void repeat(const PricedBody&, std::int64_t count);
  void call(BodyId);
  void play_block(const PricedBody&);
  void enter(const Line&);
  void leave(const Line&);
  void close_frame();
  void finish();

  Moment start_of(const Line&);
  void note_reads(const Line&, Seconds start);
  void idle_until(Moment);
  void launch_floor(Seconds start, std::int64_t kernels);
  void set(Slot, Moment);
  void signal(const Line&, Moment);
  void shift(Seconds by);

  std::vector<Seconds> times(const std::vector<Slot>&) const;
  std::optional<Seconds> uniform_advance(const std::vector<Slot>&,
                                         const std::vector<Seconds>& before) const;
  Seconds rounding(const std::vector<Slot>&) const;
  const Memo* recall(BodyId) const;
  bool fits(const Memo&) const;
  void apply(const Memo&);
  void record(BodyId);

  ClassId id_;
  Code code_;
  Seconds launch_;
  Mail& mail_;
  std::vector<Moment> clocks_;  // by slot
  Breakdown ledger_{};          // of the compute stream: sums to its clock
  Moment end_{};
  std::vector<Frame> frames_;
  IdVector<BodyId, std::vector<Memo>> memos_;
  std::optional<Recording> recording_;
};

}  // namespace orrery

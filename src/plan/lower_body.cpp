#include <algorithm>

#include "plan/lowering.h"

namespace orrery {

void Body::alloc(BufferId buffer, std::int64_t count) { push({Alloc{buffer, count}}); }

void Body::free(BufferId buffer, std::int64_t count) { push({Free{buffer, count}}); }

void Body::move(BufferId from, BufferId to) { push({Move{from, to}}); }

std::vector<EventId> Body::take_waits() {
  std::vector<EventId> events;
  for (const Event event : std::exchange(waits_, {})) events.push_back(id(event));
  return events;
}

void Body::compute(Compute compute) {
  push({std::move(compute), Stream::compute, take_waits(), {}});
}

void Body::blocking(CommId comm, BufferId buffer, BufferId source) {
  mark_computed();
  wait_for(Event::computed);
  push({Collective{comm, buffer, source}, Stream::tensor, take_waits(), id(Event::reduced)});
  wait_for(Event::reduced);
}

void Body::on_data(CommId comm, BufferId buffer, BufferId source, Event after, Event signal,
                   std::int64_t layer_shift) {
  push({Collective{comm, buffer, source, layer_shift}, Stream::data, {id(after)}, id(signal)});
}

void Body::beside(CommId comm, BufferId buffer) {
  mark_computed();
  std::vector<EventId> wait = {id(Event::computed)};
  for (const Event event : waits_) wait.push_back(id(event));
  push({Collective{comm, buffer}, Stream::context, std::move(wait), id(Event::exchanged)});
}

void Body::copy(Copy copy) {
  mark_computed();
  wait_for(Event::computed);
  push({copy, Stream::copy, take_waits(), id(Event::copied)});
  wait_for(Event::copied);
}

void Body::fetch(Copy copy, Event after) {
  push({copy, Stream::copy, {id(after)}, id(Event::copied)});
}

void Body::receive(Recv recv) {
  push({recv, Stream::pipeline, {}, id(Event::received)});
  wait_for(Event::received);
}

void Body::send(Send send) {
  mark_computed();
  wait_for(Event::computed);
  push({send, Stream::pipeline, take_waits(), {}});
}

void Body::update(Update update) {
  push({update, Stream::compute, take_waits(), id(Event::updated)});
}

void Body::call(Call call) { push({call}); }

void Body::wait_for(Event event) { waits_.insert(event); }

void Body::mark_computed() {
  for (auto it = instructions_.rbegin(); it != instructions_.rend(); ++it) {
    if (std::holds_alternative<Loop>(it->what)) return;  // its last kernel has signalled
    if (!std::holds_alternative<Compute>(it->what)) continue;
    it->signal = id(Event::computed);
    return;
  }
}

void Body::mark_started(std::size_t from) {
  const auto found = std::find_if(
      instructions_.begin() + from, instructions_.end(),
      [](const Instruction& i) { return std::holds_alternative<Compute>(i.what) && !i.signal; });
  if (found != instructions_.end()) found->signal = id(Event::started);
}

Body Body::inner() const {
  Body body;
  body.waits_ = waits_;
  return body;
}

void Body::loop(Loop shape, Body body) {
  // The beginning of the next turn waits as what follows the last one does.
  for (const Event event : body.waits_) {
    const auto first = std::find_if(
        body.instructions_.begin(), body.instructions_.end(), [](const Instruction& i) {
          return std::holds_alternative<Compute>(i.what) || i.stream == Stream::tensor;
        });
    if (first == body.instructions_.end()) break;
    if (std::count(first->wait.begin(), first->wait.end(), id(event)) == 0) {
      first->wait.push_back(id(event));
    }
  }
  waits_ = body.waits_;
  shape.body = body.take();
  push({std::move(shape)});
}

}  // namespace orrery

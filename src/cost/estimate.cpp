#include "cost/estimate.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "core/error.h"
#include "cost/estimate_walk.h"

namespace orrery {
namespace {

// Each class as far as its messages allow, then those that it has written to.
void run_all(IdVector<ClassId, Walk>& walks, Mail& mail) {
  std::deque<ClassId> ready;
  for (const ClassId id : walks.ids()) ready.push_back(id);
  while (!ready.empty()) {
    walks[ready.front()].run();
    ready.pop_front();
    for (const ClassId id : mail.take_addressees())
      if (!walks[id].done()) ready.push_back(id);
  }
}

}  // namespace

Estimate estimate(const Program& program, const Prices& prices) {
  Mail mail;
  IdVector<ClassId, Walk> walks;
  walks.reserve(program.classes.size());
  for (const ClassId id : program.classes.ids())
    walks.push_back(Walk(id, program.classes[id], prices, mail));
  run_all(walks, mail);

  const bool waits_for_ever =
      std::any_of(walks.begin(), walks.end(), [](const Walk& walk) { return !walk.done(); });
  EXPECT(!waits_for_ever);
  const bool every_message_was_received = mail.empty();
  EXPECT(every_message_was_received);

  Estimate estimate{};
  for (const Walk& walk : walks) estimate.busy.push_back(walk.busy());
  for (const Walk& walk : walks) estimate.step = std::max(estimate.step, walk.end());
  ClassId busiest;
  for (const ClassId id : walks.ids()) {
    estimate.classes.push_back(walks[id].breakdown());
    estimate.classes[id].bubble += estimate.step - walks[id].end();
    estimate.classes[id].overhead += prices.step_overhead;
    const auto key = [&](ClassId of) { return std::tuple(walks[of].busy(), walks[of].end()); };
    if (busiest.is_none() || key(busiest) < key(id)) busiest = id;
  }
  if (busiest) estimate.breakdown = estimate.classes[busiest];
  estimate.step += prices.step_overhead;
  return estimate;
}

}  // namespace orrery

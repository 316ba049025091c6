#include "twin/remedy.h"

#include <fmt/format.h>

#include <algorithm>

#include "twin/twin.h"

namespace orrery {
namespace {

struct Change {
  std::string flags;
  Strategy strategy;
};

std::vector<Change> changes(const Strategy& now) {
  std::vector<Change> all;
  const auto add = [&](bool possible, std::string flags, auto edit) {
    if (!possible) return;
    all.push_back({std::move(flags), now});
    edit(all.back().strategy);
  };
  const bool full = now.recompute == Recompute::full && now.recompute_share == 1;
  add(now.recompute == Recompute::none, "--recompute selective",
      [](Strategy& s) { s.recompute = Recompute::selective; });
  add(!full, "--recompute full", [](Strategy& s) {
    s.recompute = Recompute::full;
    s.recompute_share = 1;
  });
  add(now.micro_batch % 2 == 0, fmt::format("--micro-batch {}", now.micro_batch / 2),
      [](Strategy& s) { s.micro_batch /= 2; });
  add(now.zero == Zero::none, "--zero 1", [](Strategy& s) { s.zero = Zero::optimizer; });
  add(now.zero != Zero::weights, "--zero 3", [](Strategy& s) { s.zero = Zero::weights; });
  add(now.tp > 1 && !now.sequence_parallel, "--sequence-parallel",
      [](Strategy& s) { s.sequence_parallel = true; });
  add(now.dp % 2 == 0, fmt::format("--tp {} --dp {}", now.tp * 2, now.dp / 2), [](Strategy& s) {
    s.tp *= 2;
    s.dp /= 2;
  });
  add(now.dp % 2 == 0, fmt::format("--pp {} --dp {}", now.pp * 2, now.dp / 2), [](Strategy& s) {
    s.pp *= 2;
    s.dp /= 2;
  });
  return all;
}

}  // namespace

std::vector<Remedy> remedies(const Scenario& scenario, Bytes needed) {
  const Bytes capacity = capacity_of(scenario.cluster.gpu, scenario.framework);
  std::vector<Remedy> found;
  for (const Change& change : changes(scenario.strategy)) {
    Scenario changed = scenario;
    changed.strategy = change.strategy;
    if (change.strategy.tp > scenario.cluster.gpus_per_node) continue;
    if (!broken_rules(changed.strategy, setting_of(changed)).empty()) continue;
    const Bytes then = total(scenario_memory(changed).footprint);
    if (then < needed) found.push_back({change.flags, then, then <= capacity});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Remedy& a, const Remedy& b) { return a.needed < b.needed; });
  return found;
}

std::string shortfall(const Scenario& scenario, const std::string& where, Bytes needed,
                      Bytes capacity, const std::vector<std::pair<std::string, Bytes>>& terms) {
  const auto gib = [](Bytes bytes) { return bytes.value() / (1 << 30); };
  std::string text = fmt::format("needs {:.1f} GiB of {:.1f} GiB on {}; largest terms", gib(needed),
                                 gib(capacity), where);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, terms.size()); ++i) {
    text += fmt::format("{} {} {:.1f} GiB", i ? "," : "", terms[i].first, gib(terms[i].second));
  }
  const std::vector<Remedy> found = remedies(scenario, needed);
  if (found.empty()) return text + "; no single change of the strategy frees any";
  text += fmt::format("; {} frees most ({:.1f} GiB then, {})", found.front().flags,
                      gib(found.front().needed), found.front().fits ? "fits" : "still too much");
  return text;
}

}  // namespace orrery

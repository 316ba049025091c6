#include "search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "plan/ranks.h"

namespace orrery {
namespace {

constexpr const char* breaks_a_rule = "breaks a rule of its division";
constexpr const char* too_large = "does not fit in memory";
constexpr const char* dominated = "recomputes or shards more than one that fits";

struct Priced {
  Strategy strategy;
  Seconds step;
  Bytes memory;
};

struct Miss {
  Strategy strategy;
  Bytes memory;  // at least
};

// What one ladder came to.
struct Outcome {
  std::vector<Priced> fits;
  std::vector<Miss> misses;
  std::int64_t searched = 0, broken = 0, skipped = 0;
};

Scenario with(const Scenario& base, const Strategy& strategy) {
  Scenario scenario = base;
  scenario.strategy = strategy;
  return scenario;
}

// Of two that differ in these only, `other` is no faster.
bool does_no_less(const Strategy& other, const Strategy& than) {
  return other.recompute >= than.recompute && other.zero >= than.zero;
}

Outcome climb(const Scenario& base, const Ladder& ladder) {
  Outcome outcome;
  const Bytes capacity = capacity_of(base.cluster.gpu, base.framework);
  for (const Strategy& strategy : ladder) {
    ++outcome.searched;
    if (std::any_of(outcome.fits.begin(), outcome.fits.end(),
                    [&](const Priced& fit) { return does_no_less(strategy, fit.strategy); })) {
      ++outcome.skipped;
      continue;
    }
    if (!broken_rules(strategy, setting_of(base)).empty()) {
      ++outcome.broken;
      continue;
    }
    const Scenario scenario = with(base, strategy);
    const Bytes least = least_memory(scenario);
    if (least > capacity) {
      outcome.misses.push_back({strategy, least});
      continue;
    }
    const Answer answer = price_scenario(scenario, {}, Unfit::leave);
    if (answer.feasible) {
      outcome.fits.push_back({strategy, answer.step, answer.needed()});
    } else {
      outcome.misses.push_back({strategy, answer.needed()});
    }
  }
  return outcome;
}

// Every ladder's outcome, in the ladders' order whatever thread climbed which.
std::vector<Outcome> climb_all(const Scenario& base, const std::vector<Ladder>& ladders,
                               const SearchOptions& options) {
  std::vector<Outcome> outcomes(ladders.size());
  std::atomic<std::size_t> next = 0, done = 0;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < ladders.size(); i = next++) {
        outcomes[i] = climb(base, ladders[i]);
        ++done;
      }
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = ladders.size();
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned count = options.threads ? options.threads : cores;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
    while (options.progress && done < ladders.size() && next < ladders.size()) {
      options.progress(done, ladders.size());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  if (failure) std::rethrow_exception(failure);
  return outcomes;
}

// The best of those that differ in their chunks only: the others teach little.
void drop_near_duplicates(std::vector<Priced>& fastest_first) {
  std::set<std::array<std::int64_t, 5>> seen;
  std::erase_if(fastest_first, [&](const Priced& priced) {
    const Strategy& s = priced.strategy;
    return !seen.insert({s.tp, s.pp, s.cp, s.ep, s.micro_batch}).second;
  });
}

// A part of the step, of the best and of another.
struct Term {
  const char* name;
  Seconds best, other;

  Seconds more() const { return other - best; }
};

// "1.62 → 6.63 s": three digits of the larger, both in its unit.
std::string from_to(const Term& term) {
  using namespace literals;
  const auto [unit, name] = term.other >= 1_s    ? std::pair(1_s, "s")
                            : term.other >= 1_ms ? std::pair(1_ms, "ms")
                                                 : std::pair(1_us, "us");
  const double from = term.best / unit, to = term.other / unit;
  const int digits = to >= 100 ? 0 : to >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} → {:.{}f} {}", from, from > 0 ? digits : 0, to, digits, name);
}

double gib(Bytes bytes) { return bytes.value() / (1 << 30); }

Found gather(const std::vector<Outcome>& outcomes, std::vector<Priced>& fitting,
             std::vector<Miss>& misses) {
  Found found;
  std::int64_t broken = 0, large = 0, skipped = 0;
  for (const Outcome& outcome : outcomes) {
    found.searched += outcome.searched;
    broken += outcome.broken;
    large += static_cast<std::int64_t>(outcome.misses.size());
    skipped += outcome.skipped;
    fitting.insert(fitting.end(), outcome.fits.begin(), outcome.fits.end());
    misses.insert(misses.end(), outcome.misses.begin(), outcome.misses.end());
  }
  for (const auto& [reason, count] :
       {std::pair{breaks_a_rule, broken}, {too_large, large}, {dominated, skipped}}) {
    if (count > 0) found.pruned[reason] = count;
  }
  return found;
}

// The one that needs least memory: exact figures in the order of the bounds, until the next bound
// is more than the least of them. Of equal bounds, first what recomputes most and runs least at a
// time.
Strategy nearest_to_fitting(const Scenario& base, std::vector<Miss> misses) {
  const auto key = [](const Miss& miss) {
    return std::tuple(miss.memory, -static_cast<int>(miss.strategy.recompute),
                      miss.strategy.micro_batch);
  };
  std::stable_sort(misses.begin(), misses.end(),
                   [&](const Miss& a, const Miss& b) { return key(a) < key(b); });
  const Miss* nearest = nullptr;
  Bytes least;
  for (const Miss& miss : misses) {
    if (nearest && miss.memory >= least) break;
    const Bytes exact = total(scenario_memory(with(base, miss.strategy)).footprint);
    if (nearest && exact >= least) continue;
    nearest = &miss;
    least = exact;
  }
  return nearest->strategy;
}

// What the search chooses is no assumption.
Scenario without_searched_defaults(Scenario scenario, const Space& space) {
  std::set<std::string> searched = {"dp", "schedule"};
  const auto add = [&](const char* field, std::size_t values) {
    if (values > 1) searched.insert(field);
  };
  add("tp", space.tp.size());
  add("pp", space.pp.size());
  add("vpp", space.vpp.size());
  add("cp", space.cp.size());
  add("ep", space.ep.size());
  add("micro-batch", space.micro_batch.size());
  add("recompute", space.recompute.size());
  add("zero", space.zero.size());
  std::erase_if(scenario.assumptions,
                [&](const Assumption& assumption) { return searched.contains(assumption.field); });
  return scenario;
}

}  // namespace

Bytes least_memory(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const Architecture& model = scenario.model;
  // Their states are divided over other ranks, smaller, or elsewhere: nothing is said of them here.
  if (model.experts.count > 0 || !model.towers.empty() || !scenario.job.trains_all() ||
      s.offload != Offload::none) {
    return Bytes();
  }
  const Recipe recipe = recipe_of(scenario.framework, s, scenario.job);
  const double shards = static_cast<double>(shard_ranks(s));
  const auto held = [&](double bytes, Zero from) {
    return s.zero >= from ? bytes / shards : bytes;
  };
  const double each = held(recipe.weight_bytes, Zero::weights) +
                      held(recipe.gradient_bytes, Zero::gradients) +
                      held(recipe.optimizer_bytes, Zero::optimizer);
  return Bytes(each * static_cast<double>(parameters(model).total()) /
               static_cast<double>(s.tp * s.pp));
}

std::string why_slower(const Answer& best, const Answer& other) {
  const std::array<Term, 5> terms = {
      {{"compute", best.time.compute, other.time.compute},
       {"exposed communication", best.time.exposed_comm, other.time.exposed_comm},
       {"pipeline bubble", best.time.bubble, other.time.bubble},
       {"optimizer", best.time.optimizer, other.time.optimizer},
       {"overhead", best.time.overhead, other.time.overhead}}};
  const Term& worst = *std::max_element(
      terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.more() < b.more(); });
  const double slower = 100 * ((other.step - best.step) / best.step);
  const double share = 100 * (worst.more() / best.step);
  if (slower >= 0.05 && share >= 0.05) {
    return fmt::format("{:.1f} % slower: {} {}", slower, worst.name, from_to(worst));
  }
  const double memory = gib(other.needed() - best.needed());
  if (memory >= 0.05) return fmt::format("as fast, +{:.1f} GiB", memory);
  return "as fast";
}

Found search(const Scenario& scenario, const Space& space, const EvidenceTable& evidence,
             const SearchOptions& options) {
  const Scenario base = without_searched_defaults(scenario, space);
  const std::vector<Outcome> outcomes = climb_all(base, candidates(space, base), options);
  std::vector<Priced> fitting;
  std::vector<Miss> misses;
  Found found = gather(outcomes, fitting, misses);
  std::stable_sort(fitting.begin(), fitting.end(), [](const Priced& a, const Priced& b) {
    return std::pair(a.step, a.memory) < std::pair(b.step, b.memory);
  });
  drop_near_duplicates(fitting);
  fitting.resize(std::min(fitting.size(), options.keep));
  for (const Priced& priced : fitting) {
    Scenario chosen = with(base, priced.strategy);
    Answer answer = predict(chosen, evidence);
    std::string lost = found.best.empty() ? "" : why_slower(found.best.front().answer, answer);
    found.best.push_back({std::move(chosen), std::move(answer), std::move(lost)});
  }
  if (found.best.empty() && !misses.empty()) {
    Scenario nearest = with(base, nearest_to_fitting(base, std::move(misses)));
    Answer answer = predict(nearest, evidence);
    found.nearest_miss = Candidate{std::move(nearest), std::move(answer), ""};
  }
  return found;
}

}  // namespace orrery

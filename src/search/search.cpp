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
  bool exact = true;  // false: it needs at least `memory`
};

// What one ladder came to.
struct Outcome {
  std::optional<Priced> fits;
  std::optional<Priced> misses;  // the least memory
  std::int64_t searched = 0, broken = 0, large = 0, skipped = 0;
};

Scenario with(const Scenario& base, const Strategy& strategy) {
  Scenario scenario = base;
  scenario.strategy = strategy;
  return scenario;
}

// An exact memory is nearer to fitting than any bound above the capacity is known to be.
void keep_smaller(std::optional<Priced>& least, const Priced& other) {
  if (!least || std::pair(!other.exact, other.memory) < std::pair(!least->exact, least->memory)) {
    least = other;
  }
}

Outcome climb(const Scenario& base, const Ladder& ladder) {
  Outcome outcome;
  const Bytes capacity = capacity_of(base.cluster.gpu, base.framework);
  for (const Strategy& strategy : ladder) {
    ++outcome.searched;
    if (outcome.fits) {
      ++outcome.skipped;
      continue;
    }
    if (!broken_rules(strategy, base.model, base.cluster.gpus).empty()) {
      ++outcome.broken;
      continue;
    }
    const Scenario scenario = with(base, strategy);
    const Bytes least = least_memory(scenario);
    if (least > capacity) {
      ++outcome.large;
      keep_smaller(outcome.misses, {strategy, Seconds(0), least, false});
      continue;
    }
    const Answer answer = price_scenario(scenario, {}, Unfit::leave);
    if (!answer.feasible) {
      ++outcome.large;
      keep_smaller(outcome.misses, {strategy, Seconds(0), answer.needed(), true});
      continue;
    }
    outcome.fits = Priced{strategy, answer.step, answer.needed(), true};
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
  std::set<std::array<std::int64_t, 4>> seen;
  std::erase_if(fastest_first, [&](const Priced& priced) {
    const Strategy& s = priced.strategy;
    return !seen.insert({s.tp, s.pp, s.cp, s.micro_batch}).second;
  });
}

double gib(Bytes bytes) { return bytes.value() / (1 << 30); }

Found gather(const std::vector<Outcome>& outcomes, std::vector<Priced>& fitting,
             std::optional<Priced>& miss) {
  Found found;
  std::int64_t broken = 0, large = 0, skipped = 0;
  for (const Outcome& outcome : outcomes) {
    found.searched += outcome.searched;
    broken += outcome.broken;
    large += outcome.large;
    skipped += outcome.skipped;
    if (outcome.fits) fitting.push_back(*outcome.fits);
    if (outcome.misses) keep_smaller(miss, *outcome.misses);
  }
  for (const auto& [reason, count] :
       {std::pair{breaks_a_rule, broken}, {too_large, large}, {dominated, skipped}}) {
    if (count > 0) found.pruned[reason] = count;
  }
  return found;
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
  const Recipe recipe = recipe_of(scenario.framework, scenario.strategy);
  const double shards = static_cast<double>(shard_ranks(s));
  const auto held = [&](double bytes, Zero from) {
    return s.zero >= from ? bytes / shards : bytes;
  };
  const double each = held(recipe.weight_bytes, Zero::weights) +
                      held(recipe.gradient_bytes, Zero::gradients) +
                      held(recipe.optimizer_bytes, Zero::optimizer);
  return Bytes(each * static_cast<double>(parameters(scenario.model).total()) /
               static_cast<double>(s.tp * s.pp));
}

std::string why_slower(const Answer& best, const Answer& other) {
  const double whole = best.step.value();
  const std::array<std::pair<const char*, Seconds>, 5> more = {
      {{"compute", other.time.compute - best.time.compute},
       {"exposed communication", other.time.exposed_comm - best.time.exposed_comm},
       {"pipeline bubble", other.time.bubble - best.time.bubble},
       {"optimizer", other.time.optimizer - best.time.optimizer},
       {"overhead", other.time.overhead - best.time.overhead}}};
  const auto worst = std::max_element(
      more.begin(), more.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double slower = 100 * (other.step - best.step).value() / whole;
  const double share = 100 * worst->second.value() / whole;
  if (slower >= 0.05 && share >= 0.05) {
    return fmt::format("{:.1f} % slower: +{:.1f} % {}", slower, share, worst->first);
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
  std::optional<Priced> miss;
  Found found = gather(outcomes, fitting, miss);
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
  if (found.best.empty() && miss) {
    Scenario nearest = with(base, miss->strategy);
    Answer answer = predict(nearest, evidence);
    found.nearest_miss = Candidate{std::move(nearest), std::move(answer), ""};
  }
  return found;
}

}  // namespace orrery

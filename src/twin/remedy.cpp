#include "twin/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "twin/twin.h"

namespace orrery {
namespace {

constexpr std::int64_t most_growth = 8;  // times the GPUs that are asked for

// Changes of one scenario that may need less memory, whether they keep the rules or not.
class Changes {
 public:
  struct Change {
    std::string kind;  // of one kind, each goes further than the one before
    std::string flags;
    Scenario scenario;
  };

  Changes(const Scenario& now, bool fits) : now_(now), s_(now.strategy), fits_(fits) {}

  std::vector<Change> all() {
    recomputation();
    sizes();
    division();
    offload();
    optimizer();
    if (!fits_) {
      adapters();
      machine();
    }
    return std::move(all_);
  }

 private:
  template <class Edit>
  void add(bool possible, std::string flags, Edit edit, std::string kind = "") {
    if (!possible) return;
    if (kind.empty()) kind = flags;
    all_.push_back({std::move(kind), std::move(flags), now_});
    edit(all_.back().scenario);
  }

  void recomputation() {
    const std::int64_t half = now_.model.layers / 2;
    const bool full = s_.recompute == Recompute::full;
    add(s_.recompute == Recompute::none, "--recompute selective",
        [](Scenario& s) { s.strategy.recompute = Recompute::selective; });
    add(!full && half > 0, fmt::format("--recompute full:{}", half), [&](Scenario& s) {
      s.strategy.recompute = Recompute::full;
      s.strategy.recompute_share =
          static_cast<double>(half) / static_cast<double>(now_.model.layers);
    });
    add(!full || s_.recompute_share < 1, "--recompute full", [](Scenario& s) {
      s.strategy.recompute = Recompute::full;
      s.strategy.recompute_share = 1;
    });
  }

  void sizes() {
    add(s_.micro_batch % 2 == 0, fmt::format("--micro-batch {}", s_.micro_batch / 2),
        [](Scenario& s) { s.strategy.micro_batch /= 2; });
    add(!now_.model.towers.empty() && now_.job.images > 1,
        fmt::format("--images {:g}", now_.job.images / 2), [](Scenario& s) { s.job.images /= 2; });
  }

  void division() {
    const bool free = s_.offload != Offload::parameters;
    for (const Zero zero : {Zero::optimizer, Zero::gradients, Zero::weights}) {
      add(free && s_.zero < zero, fmt::format("--zero {}", static_cast<int>(zero)),
          [zero](Scenario& s) { s.strategy.zero = zero; });
    }
    add(s_.tp > 1 && !s_.sequence_parallel, "--sequence-parallel",
        [](Scenario& s) { s.strategy.sequence_parallel = true; });
    instead_of_replicas("tp", s_.tp, &Strategy::tp);
    instead_of_replicas("pp", s_.pp, &Strategy::pp);
    instead_of_replicas("cp", s_.cp, &Strategy::cp);
    add(now_.model.experts.count > 0, fmt::format("--ep {}", s_.ep * 2),
        [](Scenario& s) { s.strategy.ep *= 2; });
  }

  void instead_of_replicas(const char* flag, std::int64_t ranks, std::int64_t Strategy::*field) {
    for (std::int64_t times = 2; s_.dp % times == 0; times *= 2) {
      add(
          true, fmt::format("--{} {} --dp {}", flag, ranks * times, s_.dp / times),
          [&](Scenario& s) {
            s.strategy.*field *= times;
            s.strategy.dp /= times;
          },
          flag);
    }
  }

  void offload() {
    const bool none = s_.offload == Offload::none;
    add(none, "--offload optimizer", [](Scenario& s) { s.strategy.offload = Offload::optimizer; });
    add(none && now_.job.task != Task::qlora,
        s_.zero == Zero::weights ? "--offload parameters" : "--zero 3 --offload parameters",
        [](Scenario& s) {
          s.strategy.offload = Offload::parameters;
          s.strategy.zero = Zero::weights;
        });
    add(none, "--offload activations",
        [](Scenario& s) { s.strategy.offload = Offload::activations; });
  }

  void optimizer() {
    for (const Optimizer other : {Optimizer::adam_bf16, Optimizer::adam8bit}) {
      add(moment_bytes(now_.job.optimizer) > moment_bytes(other),
          fmt::format("--optimizer {}", name_of(other)),
          [other](Scenario& s) { s.job.optimizer = other; });
    }
  }

  void adapters() {
    const bool adapted = now_.job.lora_rank > 0;
    const auto freeze = [](Scenario& s, Task task) {
      s.job.task = task;
      s.job.lora_rank = std::max<std::int64_t>(s.job.lora_rank, usual_lora_rank);
      s.job.freezes_stack = true;
      s.job.freezes_towers = s.job.freezes_projector = !s.model.towers.empty();
    };
    add(!adapted, "--task lora", [&](Scenario& s) { freeze(s, Task::lora); });
    add(now_.job.task != Task::qlora && s_.offload != Offload::parameters &&
            now_.precision != Precision::fp8,
        "--task qlora", [&](Scenario& s) { freeze(s, Task::qlora); });
  }

  // As many replicas more, their state sharded as far as the framework can.
  void machine() {
    const Cluster& cluster = now_.cluster;
    const bool shards_all = accepts(now_.framework.rules.zero, "3");
    const Zero zero = std::max(s_.zero, shards_all ? Zero::weights : Zero::optimizer);
    for (std::int64_t times = 2; times <= most_growth; times *= 2) {
      const std::int64_t gpus = cluster.gpus * times, dp = s_.dp * times;
      const bool one_node = gpus <= cluster.node.gpus.value_or(1);
      if (!one_node && (cluster.nodes() == 1 || !cluster.fabric)) return;
      const std::int64_t round = dp * s_.micro_batch;
      const std::int64_t batch = (s_.global_batch + round - 1) / round * round;
      std::string flags =
          fmt::format("--gpus {} --dp {} --zero {}", gpus, dp, static_cast<int>(zero));
      if (batch != s_.global_batch) flags += fmt::format(" --global-batch {}", batch);
      add(
          true, std::move(flags),
          [&](Scenario& s) {
            s.cluster.gpus = gpus;
            if (one_node) s.cluster.gpus_per_node = gpus;
            s.strategy.dp = dp;
            s.strategy.zero = zero;
            s.strategy.global_batch = batch;
          },
          "gpus");
    }
  }

  const Scenario& now_;
  const Strategy& s_;
  bool fits_;  // what trains less, or on more, is no help then
  std::vector<Change> all_;
};

double gib(Bytes bytes) { return bytes.value() / (1 << 30); }

}  // namespace

std::vector<Remedy> remedies(const Scenario& scenario, Bytes needed) {
  const Bytes capacity = capacity_of(scenario.cluster.gpu, scenario.framework);
  std::map<std::string, Remedy> furthest;  // of each kind: the first that fits, or the last
  std::vector<std::string> kinds;          // in order
  for (Changes::Change& change : Changes(scenario, needed <= capacity).all()) {
    const auto known = furthest.find(change.kind);
    if (known != furthest.end() && known->second.fits) continue;
    const Scenario& changed = change.scenario;
    if (changed.strategy.tp > changed.cluster.gpus_per_node) continue;
    if (!broken_rules(changed.strategy, setting_of(changed)).empty()) continue;
    const Bytes then = total(scenario_memory(changed).footprint);
    if (then >= needed) continue;
    if (known == furthest.end()) kinds.push_back(change.kind);
    furthest[change.kind] = {std::move(change.flags), std::move(change.scenario), then,
                             then <= capacity};
  }
  std::vector<Remedy> found;
  for (const std::string& kind : kinds) found.push_back(std::move(furthest.at(kind)));
  return found;
}

namespace {

// "--recompute full (61.0 GiB), ..." of those that fit.
std::string fitting_text(const std::vector<Remedy>& found) {
  std::string text;
  for (const Remedy& remedy : found) {
    if (!remedy.fits) continue;
    text += fmt::format("{}{} ({:.1f} GiB)", text.empty() ? "" : ", ", remedy.flags,
                        gib(remedy.needed));
  }
  return text;
}

const Remedy& least(const std::vector<Remedy>& found) {
  return *std::min_element(found.begin(), found.end(),
                           [](const Remedy& a, const Remedy& b) { return a.needed < b.needed; });
}

}  // namespace

std::string shortfall(const Scenario& scenario, const std::string& where, Bytes needed,
                      Bytes capacity, const std::vector<std::pair<std::string, Bytes>>& terms) {
  std::string text = fmt::format("needs {:.1f} GiB of {:.1f} GiB on {}; largest terms", gib(needed),
                                 gib(capacity), where);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, terms.size()); ++i) {
    text += fmt::format("{} {} {:.1f} GiB", i ? "," : "", terms[i].first, gib(terms[i].second));
  }
  const std::vector<Remedy> found = remedies(scenario, needed);
  if (found.empty()) return text + "; no single change frees any";
  if (const std::string fitting = fitting_text(found); !fitting.empty()) {
    return text + "; what fits: " + fitting;
  }
  const Remedy& best = least(found);
  text += fmt::format("; no single change is enough: {} frees most ({:.1f} GiB then)", best.flags,
                      gib(best.needed));
  const std::string second = fitting_text(remedies(best.scenario, best.needed));
  return second.empty() ? text : text + "; beside it fits: " + second;
}

}  // namespace orrery

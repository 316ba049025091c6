#include "twin/remedy.h"

#include <fmt/format.h>

#include <algorithm>

#include "twin/twin.h"

namespace orrery {
namespace {

constexpr std::int64_t most_growth = 8;  // times the GPUs that are asked for

// Changes of one scenario that may need less memory, whether they keep the rules or not.
class Changes {
 public:
  struct Change {
    std::string flags;
    Scenario scenario;
  };

  explicit Changes(const Scenario& now) : now_(now), s_(now.strategy) {}

  std::vector<Change> all() {
    recomputation();
    sizes();
    division();
    offload();
    optimizer();
    adapters();
    machine();
    return std::move(all_);
  }

 private:
  template <class Edit>
  void add(bool possible, std::string flags, Edit edit) {
    if (!possible) return;
    all_.push_back({std::move(flags), now_});
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
    add(s_.dp % 2 == 0, fmt::format("--{} {} --dp {}", flag, ranks * 2, s_.dp / 2),
        [field](Scenario& s) {
          s.strategy.*field *= 2;
          s.strategy.dp /= 2;
        });
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
      add(true, std::move(flags), [&](Scenario& s) {
        s.cluster.gpus = gpus;
        if (one_node) s.cluster.gpus_per_node = gpus;
        s.strategy.dp = dp;
        s.strategy.zero = zero;
        s.strategy.global_batch = batch;
      });
    }
  }

  const Scenario& now_;
  const Strategy& s_;
  std::vector<Change> all_;
};

double gib(Bytes bytes) { return bytes.value() / (1 << 30); }

}  // namespace

std::vector<Remedy> remedies(const Scenario& scenario, Bytes needed) {
  const Bytes capacity = capacity_of(scenario.cluster.gpu, scenario.framework);
  std::vector<Remedy> found;
  bool more_gpus_fit = false;  // twice as many need not be said then
  for (Changes::Change& change : Changes(scenario).all()) {
    const Scenario& changed = change.scenario;
    const bool grows = changed.cluster.gpus > scenario.cluster.gpus;
    if (grows && more_gpus_fit) continue;
    if (changed.strategy.tp > changed.cluster.gpus_per_node) continue;
    if (!broken_rules(changed.strategy, setting_of(changed)).empty()) continue;
    const Bytes then = total(scenario_memory(changed).footprint);
    if (then >= needed) continue;
    more_gpus_fit = grows && then <= capacity;
    found.push_back({std::move(change.flags), std::move(change.scenario), then, then <= capacity});
  }
  return found;
}

std::string shortfall(const Scenario& scenario, const std::string& where, Bytes needed,
                      Bytes capacity, const std::vector<std::pair<std::string, Bytes>>& terms) {
  std::string text = fmt::format("needs {:.1f} GiB of {:.1f} GiB on {}; largest terms", gib(needed),
                                 gib(capacity), where);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, terms.size()); ++i) {
    text += fmt::format("{} {} {:.1f} GiB", i ? "," : "", terms[i].first, gib(terms[i].second));
  }
  const std::vector<Remedy> found = remedies(scenario, needed);
  if (found.empty()) return text + "; no single change frees any";
  std::string fitting;
  for (const Remedy& remedy : found) {
    if (!remedy.fits) continue;
    fitting += fmt::format("{}{} ({:.1f} GiB)", fitting.empty() ? "" : ", ", remedy.flags,
                           gib(remedy.needed));
  }
  if (!fitting.empty()) return text + "; what fits: " + fitting;
  const Remedy& best =
      *std::min_element(found.begin(), found.end(),
                        [](const Remedy& a, const Remedy& b) { return a.needed < b.needed; });
  return text + fmt::format("; no single change is enough: {} frees most ({:.1f} GiB then)",
                            best.flags, gib(best.needed));
}

}  // namespace orrery

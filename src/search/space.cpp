#include "search/space.h"

#include <algorithm>

#include "plan/rules.h"

namespace orrery {
namespace {

constexpr std::int64_t long_sequence = 32 * 1024;
constexpr std::int64_t least_shard = 4096;  // tokens of a sequence on one rank

std::vector<std::int64_t> powers_of_two(std::int64_t high) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= high; value *= 2) values.push_back(value);
  return values;
}

std::vector<std::int64_t> counts(std::int64_t high) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= high; ++value) values.push_back(value);
  return values;
}

// Whether the framework leaves room for embedding and head only where it is told each stage's
// layers.
bool must_spell_out_ends(const Scenario& scenario, std::int64_t chunks) {
  return scenario.model.layers % chunks != 0 && scenario.strategy.stage_layers.empty() &&
         !accepts(scenario.framework.rules.uneven_layers, "embedding-and-head");
}

}  // namespace

Space space_of(const Request& request, const Scenario& scenario) {
  const auto given = [&](const char* key) { return request.values.contains(key); };
  const Strategy& now = scenario.strategy;
  const std::int64_t layers = scenario.model.layers;
  Space space;
  space.tp = given("tp") ? std::vector{now.tp} : powers_of_two(scenario.cluster.gpus_per_node);
  space.pp = given("pp") ? std::vector{now.pp} : counts(std::min(layers, scenario.cluster.gpus));
  space.vpp = given("vpp") ? std::vector{now.vpp} : counts(8);
  if (given("schedule") && now.schedule != Schedule::interleaved) space.vpp = {1};
  space.cp = {now.cp};
  if (!given("cp") && now.seq_len >= long_sequence) {
    space.cp = powers_of_two(std::min(now.seq_len / least_shard, scenario.cluster.gpus));
  }
  space.ep = {now.ep};
  if (!given("ep") && accepts(scenario.framework.rules.experts, "ep")) {
    space.ep = powers_of_two(scenario.model.experts.count);
    std::erase_if(space.ep, [&](auto ep) { return scenario.model.experts.count % ep != 0; });
    if (space.ep.empty()) space.ep = {now.ep};
  }
  space.micro_batch = given("micro-batch") ? std::vector{now.micro_batch} : powers_of_two(8);
  space.recompute = {now.recompute};
  if (!given("recompute")) {
    space.recompute = {Recompute::none, Recompute::full};
    if (scenario.attention == AttentionKernel::unfused) {
      space.recompute.insert(space.recompute.begin() + 1, Recompute::selective);
    }
  }
  space.zero = {now.zero};
  if (!given("zero")) {
    const auto add = [&](Zero zero) {
      const std::string stage = std::to_string(static_cast<int>(zero));
      if (accepts(scenario.framework.rules.zero, stage)) space.zero.push_back(zero);
    };
    if (now.zero == Zero::none) add(Zero::optimizer);
    if (now.zero != Zero::weights) add(Zero::weights);
  }
  if (given("dp")) space.dp = now.dp;
  space.sequence_parallel_too = !given("sequence-parallel");
  return space;
}

std::vector<Ladder> candidates(const Space& space, const Scenario& scenario) {
  std::vector<Ladder> ladders;
  const auto add = [&](Strategy strategy) {
    Ladder ladder;
    for (const Recompute recompute : space.recompute) {
      for (const Zero zero : space.zero) {
        strategy.recompute = recompute;
        if (space.recompute.size() > 1) strategy.recompute_share = 1;
        strategy.zero = zero;
        ladder.push_back(strategy);
      }
    }
    ladders.push_back(std::move(ladder));
  };
  const std::int64_t gpus = scenario.cluster.gpus;
  for (const std::int64_t tp : space.tp) {
    for (const std::int64_t pp : space.pp) {
      for (const std::int64_t cp : space.cp) {
        if (gpus % (tp * pp * cp) != 0) continue;
        if (space.dp && *space.dp != gpus / (tp * pp * cp)) continue;
        for (const std::int64_t vpp : space.vpp) {
          if (vpp > 1 && pp == 1) continue;
          if (!layers_fit(scenario.model.layers, pp, vpp)) continue;
          for (const std::int64_t micro_batch : space.micro_batch) {
            Strategy strategy = scenario.strategy;
            strategy.tp = tp;
            strategy.pp = pp;
            strategy.cp = cp;
            strategy.dp = gpus / (tp * pp * cp);
            strategy.vpp = vpp;
            if (strategy.schedule != Schedule::gpipe) {
              strategy.schedule = vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
            }
            strategy.micro_batch = micro_batch;
            if (must_spell_out_ends(scenario, pp * vpp)) {
              strategy.stage_layers = uneven_ends(scenario.model.layers, pp * vpp);
            }
            if (space.sequence_parallel_too) strategy.sequence_parallel = tp > 1;
            for (const std::int64_t ep : space.ep) {
              const std::int64_t ranks = gpus / pp;
              if (space.ep.size() > 1 && ranks % (ep * strategy.etp) != 0) continue;
              strategy.ep = ep;
              add(strategy);
            }
          }
        }
      }
    }
  }
  return ladders;
}

}  // namespace orrery

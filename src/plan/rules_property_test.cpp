// Strategies drawn at random for every model of the catalog under every framework's rules: what
// breaks none can be lowered, onto as many ranks as there are GPUs.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "catalog/catalog.h"
#include "core/error.h"
#include "model/build.h"
#include "plan/lower.h"
#include "plan/rules.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog catalog = Catalog::load(default_data_dir());
  return catalog;
}

class Draw {
 public:
  template <class T>
  T of(std::initializer_list<T> values) {
    return *(values.begin() + engine_() % values.size());
  }
  std::int64_t count(std::initializer_list<std::int64_t> values) { return of(values); }
  bool coin() { return engine_() % 2 != 0; }

 private:
  std::mt19937 engine_{20231207};
};

Strategy any_strategy(Draw& draw) {
  Strategy s;
  s.tp = draw.count({1, 1, 2, 4, 7, 8}), s.pp = draw.count({1, 1, 2, 4, 5, 8});
  s.cp = draw.count({1, 1, 2, 4}), s.dp = draw.count({1, 2, 4, 6});
  s.vpp = s.pp > 1 ? draw.count({1, 1, 2, 3}) : 1;
  s.ep = draw.count({1, 1, 2, 4, 8}), s.etp = draw.count({1, 1, 1, 2});
  s.schedule =
      s.pp == 1 ? Schedule::one_f_one_b
                : draw.of({Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                           Schedule::zero_bubble_h1, Schedule::zero_bubble_v, Schedule::dual_pipe});
  s.context_kind = draw.of({ContextKind::all_gather, ContextKind::ring, ContextKind::ulysses});
  s.offload = draw.of({Offload::none, Offload::none, Offload::none, Offload::optimizer,
                       Offload::parameters, Offload::activations});
  s.zero = draw.of({Zero::none, Zero::optimizer, Zero::gradients, Zero::weights});
  s.recompute = draw.of({Recompute::none, Recompute::selective, Recompute::full});
  s.sequence_parallel = s.tp > 1 && draw.coin();
  s.micro_batch = draw.count({1, 2});
  s.seq_len = draw.count({1024, 4096, 1000});
  s.global_batch = s.micro_batch * s.dp * draw.count({1, 4, 8, 16, 40});
  return s;
}

constexpr int draws = 48;  // a model

std::int64_t ranks_of(const Program& program) {
  return std::accumulate(program.classes.begin(), program.classes.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& ranks) { return sum + ranks.ranks; });
}

TEST(RulesProperty, WhatBreaksNoneIsLowered) {
  Draw draw;
  std::int64_t lowered = 0, refused = 0;
  const std::vector<std::string> entries = catalog().names(EntryKind::rules);
  for (const std::string& name : catalog().names(EntryKind::model)) {
    const Architecture model = catalog().model(name);
    if (!unlowered(model).empty()) continue;
    for (int i = 0; i < draws; ++i) {
      const std::string& entry = entries[static_cast<std::size_t>(i) % entries.size()];
      const FrameworkRules rules = catalog().rules(entry);
      const Strategy s = any_strategy(draw);
      if (!broken_rules(s, {.model = model, .rules = rules, .gpus = s.ranks()}).empty()) {
        ++refused;
        continue;
      }
      SCOPED_TRACE(name + " " + entry + " tp " + std::to_string(s.tp) + " pp " +
                   std::to_string(s.pp) + " vpp " + std::to_string(s.vpp) + " cp " +
                   std::to_string(s.cp) + " ep " + std::to_string(s.ep));
      const OpGraph graph = training_graph(
          model, {.micro_batch = s.micro_batch, .seq_len = s.seq_len, .causal = model.causal});
      try {
        EXPECT_EQ(ranks_of(lower(graph, s, {})), s.ranks());
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      ++lowered;
    }
  }
  EXPECT_GT(lowered, 200);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace orrery

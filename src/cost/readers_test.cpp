// Two readers of one Program must agree: the closed form with a replay written without it, and the
// folded memory walk with an unrolled one, on layouts drawn at random.
#include <gtest/gtest.h>

#include <random>

#include "cost/estimate.h"
#include "cost/memory.h"
#include "plan/test_walk.h"
#include "plan/toy_replay.h"

namespace orrery {
namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  std::int64_t of(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + engine_() % values.size());
  }
  bool coin() { return engine_() % 2 != 0; }
  Seconds moment() { return Seconds(static_cast<double>(1 + engine_() % 1000) * 1e-6); }

 private:
  std::mt19937 engine_;
};

Schedule any_schedule(std::int64_t pp, std::int64_t vpp, Draw& draw) {
  const std::int64_t kind = draw.of({0, 1, 2});
  if (vpp > 1) {
    return kind == 0   ? Schedule::interleaved
           : kind == 1 ? Schedule::zero_bubble_v
                       : Schedule::dual_pipe;
  }
  if (kind == 2 && pp > 1) return Schedule::zero_bubble_h1;
  return kind == 0 ? Schedule::one_f_one_b : Schedule::gpipe;
}

Strategy any_strategy(Draw& draw) {
  Strategy s;
  s.tp = draw.of({1, 2, 4}), s.pp = draw.of({1, 2, 4}), s.dp = draw.of({1, 2});
  s.cp = draw.of({1, 2}), s.seq_len = 64;
  s.vpp = s.pp > 1 ? draw.of({1, 2}) : 1;
  s.schedule = any_schedule(s.pp, s.vpp, draw);
  s.sequence_parallel = s.tp > 1 && draw.coin();
  s.zero = static_cast<Zero>(draw.of({0, 1, 2, 3}));
  s.recompute = static_cast<Recompute>(draw.of({0, 1, 2, 3}));
  s.recompute_share = draw.coin() ? 1 : 0.5;
  s.global_batch = s.dp * 8;
  return s;
}

Recipe any_recipe(Draw& draw) {
  Recipe recipe;
  recipe.overlap_data = draw.coin();
  recipe.reshard_after_forward = draw.coin();
  recipe.logit_bytes = draw.coin() ? 4 : 10;
  recipe.shards_checkpoints = draw.coin();
  recipe.scatters_sends = draw.coin();
  return recipe;
}

Prices any_prices(const Program& program, Draw& draw) {
  Prices prices{};
  for (std::size_t i = 0; i < program.kernels.size(); ++i) prices.kernels.push_back(draw.moment());
  for (std::size_t i = 0; i < program.comms.size(); ++i) {
    prices.comms.push_back({draw.moment(), Seconds(0)});
  }
  prices.point_to_point_latency = draw.moment();
  prices.point_to_point = prices.host = prices.update = BytesPerSecond(1e9);
  return prices;
}

double price_of(const Instruction& instruction, const Prices& prices) {
  if (const auto* c = std::get_if<Compute>(&instruction.what)) {
    return prices.kernels[c->kernel].value();
  }
  if (const auto* c = std::get_if<Collective>(&instruction.what)) {
    return prices.comms[c->comm].duration.value();
  }
  if (const auto* c = std::get_if<Send>(&instruction.what)) {
    if (c->size == Bytes()) return 0;  // within the rank
    return (prices.point_to_point_latency + c->size / prices.point_to_point).value();
  }
  if (const auto* c = std::get_if<Update>(&instruction.what)) {
    return ((c->read + c->written) / prices.update).value();
  }
  return 0;
}

TEST(Readers, AgreeOnTimeAndMemoryOfAnyLayout) {
  Draw draw(1);
  for (int i = 0; i < 300; ++i) {
    const Strategy s = any_strategy(draw);
    const Recipe recipe = any_recipe(draw);
    Architecture model = llama_like("any", {8, 64, 8, 8, 8, 256, 512});
    model.tied_embeddings = draw.coin();
    const bool flash = draw.coin(), dropout = draw.coin();
    const Trained t = trained(model, s, recipe, flash, dropout);
    const Prices prices = any_prices(t.program, draw);
    const auto priced = [&](const Instruction& one) { return price_of(one, prices); };

    const double closed = estimate(t.program, prices).step.value();
    const double played = ToyReplay(t.program, priced).play().makespan;
    ASSERT_NEAR(closed / played, 1, 1e-9)
        << "tp " << s.tp << " pp " << s.pp << " vpp " << s.vpp << " dp " << s.dp << " zero "
        << static_cast<int>(s.zero) << " recompute " << name_of(s.recompute);

    const Peak peak = peak_memory(t.program);
    for (const ClassId id : t.program.classes.ids()) {
      ASSERT_NEAR(total(peak.by_class[id]).value() / memory_of(t.program.classes[id]).peak_total, 1,
                  1e-9);
    }
  }
}

}  // namespace
}  // namespace orrery

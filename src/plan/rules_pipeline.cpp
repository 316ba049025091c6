// Rules of pipelines: layers over chunks, and what each schedule asks.
#include <numeric>

#include "plan/judge.h"

namespace orrery {
namespace {

// Micro-batches x stages x chunks of a stage: a pipeline is walked one by one, and so many take
// half a second. The published run with most has 39 200 (MT-NLG 530B over 35 stages, arXiv
// 2104.04473).
constexpr std::int64_t most_passes = 1 << 17;

std::int64_t parts_of(Schedule schedule, std::int64_t pp, std::int64_t vpp) {
  return schedule == Schedule::dual_pipe ? pp : pp * vpp;
}

// "pp x vpp = 4 x 2 = 8"; a bidirectional pipeline's two copies share its stages.
std::string product(const Strategy& s) {
  if (s.schedule == Schedule::dual_pipe) return fmt::format("pp = {}", s.pp);
  return fmt::format("pp x vpp = {} x {} = {}", s.pp, s.vpp, s.pp * s.vpp);
}

// Whether the framework places the layers on so many chunks when it is told nothing else.
bool places(const Judge& judge, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t layers = judge.at.model.layers;
  const std::int64_t parts = parts_of(judge.s.schedule, pp, vpp);
  if (layers % parts == 0) return true;
  if (!judge.s.equal_chunks && layers >= parts) return true;
  return accepts(judge.at.rules.uneven_layers, "embedding-and-head") &&
         layers_fit(layers, pp, parts / pp);
}

std::string slashed(const std::vector<std::int64_t>& values) {
  return fmt::format("{}", fmt::join(values, "/"));
}

// What else to do with layers that do not divide.
std::string other_splits(const Judge& judge) {
  const Strategy& s = judge.s;
  std::string text = nearest_pp(judge);
  if (s.vpp > 1) {
    text += "; vpp: " + nearest(s.vpp, judge.at.model.layers,
                                [&](auto vpp) { return places(judge, s.pp, vpp); });
  }
  const FrameworkRules::Rule& rule = judge.at.rules.uneven_layers;
  const auto ends = uneven_ends(judge.at.model.layers, parts_of(s));
  if (!ends.empty() && (accepts(rule, "ends") || accepts(rule, "any"))) {
    text += fmt::format("; or --split {}", fmt::join(ends, ","));
  }
  return text;
}

void judge_stage_layers(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t layers = judge.at.model.layers, parts = parts_of(s);
  const std::vector<std::int64_t>& stages = s.stage_layers;
  if (static_cast<std::int64_t>(stages.size()) != parts) {
    judge.add("stage layers {} are {} counts, not one for each of {} chunks of layers; {}",
              slashed(stages), stages.size(), parts, other_splits(judge));
    return;
  }
  const std::int64_t sum = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
  if (sum != layers) {
    judge.add(
        "stage layers {} sum to {}, not to the model's {} (the others would be left out and their "
        "FLOPs still counted: NVIDIA/Megatron-LM#1778); {}",
        slashed(stages), sum, layers, parts == 1 ? "leave them out" : other_splits(judge));
  }
  if (std::any_of(stages.begin(), stages.end(), [](auto count) { return count < 1; })) {
    judge.add("stage layers {} leave a chunk without a layer; the nearest valid value is 1",
              slashed(stages));
  }
  const FrameworkRules::Rule& rule = judge.at.rules.uneven_layers;
  if (accepts(rule, "any")) return;
  const bool inner_alike =
      stages.size() < 3 || std::all_of(stages.begin() + 1, stages.end() - 1,
                                       [&](auto count) { return count == stages[1]; });
  if (accepts(rule, "ends") && inner_alike) return;
  judge.add("stage layers {} are not what {} can divide ({}); {}", slashed(stages),
            judge.at.rules.title,
            accepts(rule, "ends") ? "all stages but the first and the last are alike"
                                  : "all stages are alike",
            other_splits(judge));
}

void judge_chunks(Judge& judge) {
  const Strategy& s = judge.s;
  const bool folded = s.schedule == Schedule::zero_bubble_v || s.schedule == Schedule::dual_pipe;
  if (folded && s.vpp != 2) {
    judge.add("vpp is {} and {} puts two chunks on each stage; vpp: 2", s.vpp, name_of(s.schedule));
  }
  if (s.vpp > 1 && !folded && s.schedule != Schedule::interleaved) {
    judge.add("vpp {} needs the interleaved schedule, not {}; the nearest valid value is 1", s.vpp,
              name_of(s.schedule));
  }
  const bool needs_stages =
      folded || s.schedule == Schedule::interleaved || s.schedule == Schedule::zero_bubble_h1;
  if (needs_stages && s.pp == 1) {
    judge.add("the {} schedule needs more than one stage (pp is 1); {}", name_of(s.schedule),
              nearest_pp(judge));
  }
  if (s.schedule == Schedule::dual_pipe && s.pp % 2 != 0 && s.pp > 1) {
    judge.add("dualpipe runs two pipelines that meet in the middle and pp {} is odd; {}", s.pp,
              nearest_pp(judge));
  }
}

void judge_micro_batches(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t step = s.dp * s.micro_batch;
  if (s.global_batch % step != 0) return;
  const std::int64_t count = s.micro_batches();
  if (s.schedule == Schedule::interleaved && count % s.pp != 0) {
    judge.add(
        "{} micro-batches are not a multiple of pp {} (the interleaved schedule runs them in "
        "groups of pp); {}, with global batches in steps of {}",
        count, s.pp, nearest_multiple(count, s.pp), step * s.pp);
  }
  if (s.schedule == Schedule::dual_pipe && (count % 2 != 0 || count < 2 * s.pp)) {
    const std::int64_t even = std::max(2 * s.pp, count + count % 2);
    judge.add(
        "dualpipe needs an even count of micro-batches, at least 2 x pp = {} (half enters at "
        "either "
        "end), not {}; the nearest valid value is {}, with a global batch of {}",
        2 * s.pp, count, even, even * step);
  }
}

}  // namespace

std::int64_t parts_of(const Strategy& s) { return parts_of(s.schedule, s.pp, s.vpp); }

std::vector<std::int64_t> uneven_ends(std::int64_t layers, std::int64_t parts) {
  if (parts < 2) return {};
  const std::int64_t most = (layers + parts - 1) / parts;
  for (const std::int64_t inner : {most, most - 1}) {
    const std::int64_t ends = layers - inner * (parts - 2);
    if (inner < 1 || ends < 2) continue;
    std::vector<std::int64_t> found(static_cast<std::size_t>(parts), inner);
    found.front() = ends / 2;
    found.back() = ends - ends / 2;
    return found;
  }
  return {};
}

std::string nearest_pp(const Judge& judge) {
  const Strategy& s = judge.s;
  return "pp: " + nearest(s.pp, judge.at.model.layers, [&](auto pp) {
           const bool paired = s.schedule != Schedule::dual_pipe || pp % 2 == 0;
           return paired && places(judge, pp, s.vpp) && judge.divides_gpus(pp, s.tp * s.cp);
         });
}

void judge_layers(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t layers = judge.at.model.layers, parts = parts_of(s);
  if (!s.stage_layers.empty()) return judge_stage_layers(judge);
  if (places(judge, s.pp, s.vpp)) return;
  if (layers < parts) {
    judge.add(
        "{} layers are fewer than {} (every chunk between embedding and head "
        "holds a layer); {}",
        layers, product(s), nearest_pp(judge));
  } else if (accepts(judge.at.rules.uneven_layers, "embedding-and-head")) {
    judge.add(
        "{} layers (or {} with embedding and head as one each) do not divide by {} "
        "(chunks hold equally many); {}",
        layers, layers + 2, product(s), other_splits(judge));
  } else {
    judge.add("{} layers do not divide by {} (chunks hold equally many); {}", layers, product(s),
              other_splits(judge));
  }
}

void judge_schedule(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t step = s.dp * s.micro_batch;
  const std::int64_t chunks = s.pp * s.vpp;
  if (s.pp > 1 && chunks <= most_passes && s.global_batch / step > most_passes / chunks) {
    judge.add(
        "{} micro-batches through {} chunks of layers are more than can be walked; so many chunks "
        "take global batches of up to {}",
        s.global_batch / step, chunks, most_passes / chunks * step);
  }
  judge_chunks(judge);
  judge_micro_batches(judge);
}

}  // namespace orrery

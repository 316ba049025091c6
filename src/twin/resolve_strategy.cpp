#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "twin/resolver.h"

namespace orrery {
namespace {

constexpr std::int64_t default_step_tokens = 4 << 20;

Recompute recompute_of(const Asked& given) {
  return given.choice<Recompute>({{"none", Recompute::none},
                                  {"selective", Recompute::selective},
                                  {"operators", Recompute::operators},
                                  {"full", Recompute::full}});
}

}  // namespace

void Resolver::division() {
  Strategy& s = scenario_.strategy;
  const std::string reason = "not divided, unless told so";
  s.equal_chunks = scenario_.framework.defaults.equal_chunks;
  s.tp = whole_or("tp", 1, max_ranks, reason);
  s.pp = whole_or("pp", 1, max_ranks, reason);
  s.cp = whole_or("cp", 1, max_ranks, reason);
  const std::int64_t rest =
      std::max<std::int64_t>(1, scenario_.cluster.gpus / (s.tp * s.pp * s.cp));
  s.dp = whole_or("dp", rest, max_ranks, "gpus / (tp x pp x cp)");
  if (const Asked kind = asked("cp-kind")) {
    s.context_kind = kind.choice<ContextKind>({{"all-gather", ContextKind::all_gather},
                                               {"ring", ContextKind::ring},
                                               {"ulysses", ContextKind::ulysses}});
  } else if (s.cp > 1) {
    assume("cp-kind", std::string(name_of(s.context_kind)), "as Llama 3 was trained");
  }
  if (const Asked given = asked("sequence-parallel")) {
    s.sequence_parallel = given.yes();
  } else if (s.tp > 1) {
    s.sequence_parallel = scenario_.framework.defaults.sequence_parallel;
    assume("sequence-parallel", s.sequence_parallel ? "true" : "false", habit());
  }
}

void Resolver::expert_division() {
  if (scenario_.model.experts.count == 0) {
    for (const char* key : {"ep", "etp"}) {
      const Asked given = asked(key);
      if (given && given.whole(1, max_ranks) > 1) {
        given.fail("divides experts, and " + scenario_.model.name + " has none",
                   fmt::format("leave --{} out", key));
      }
    }
    return;
  }
  Strategy& s = scenario_.strategy;
  s.ep = whole_or("ep", 1, max_ranks, "not divided, unless told so");
  s.etp = whole_or("etp", 1, max_ranks, "each expert whole, as NeMo's recipes train them");
}

void Resolver::offload() {
  Strategy& s = scenario_.strategy;
  const Asked given = asked("offload");
  if (given) {
    s.offload = given.choice<Offload>({{"none", Offload::none},
                                       {"optimizer", Offload::optimizer},
                                       {"parameters", Offload::parameters},
                                       {"activations", Offload::activations}});
  }
  const Asked to = asked("offload-to");
  if (!to) return;
  s.offload_to_nvme = to.choice<bool>({{"cpu", false}, {"nvme", true}});
  if (s.offload == Offload::none) {
    to.fail("says where to, and nothing is offloaded", "add --offload optimizer");
  }
  if (s.offload_to_nvme && s.offload == Offload::activations) {
    to.fail("is too slow for activations, and no framework puts them there",
            "give --offload-to cpu");
  }
}

void Resolver::memory_choices() {
  Strategy& s = scenario_.strategy;
  const Asked zero = asked("zero");
  if (zero) {
    s.zero = static_cast<Zero>(zero.whole(0, 3));
  } else if (s.offload == Offload::parameters) {
    s.zero = Zero::weights;
    assume("zero", "3", "what fetching weights from host memory takes");
  } else if (!scenario_.model.custom.trained) {
    assume("zero", "0", "nothing is trained that could be divided");
  } else {
    s.zero = static_cast<Zero>(scenario_.framework.defaults.zero);
    assume("zero", std::to_string(scenario_.framework.defaults.zero), habit());
  }
  if (zero && s.offload == Offload::parameters && s.zero != Zero::weights) {
    zero.fail("keeps whole weights on each GPU, and --offload parameters fetches them",
              "give --zero 3");
  }
  if (const Asked given = asked("shard-ranks")) s.shard_ranks = given.whole(1, max_ranks);
}

void Resolver::recompute() {
  Strategy& s = scenario_.strategy;
  if (!scenario_.model.custom.trained) return;
  const Asked given = asked("recompute");
  if (!given) {
    Request own;
    own.values["recompute"] = scenario_.framework.defaults.recompute;
    s.recompute = recompute_of(Asked(own, "recompute"));
    assume("recompute", scenario_.framework.defaults.recompute, habit());
  } else if (given.text().starts_with("full:")) {
    Request count = request_;
    count.values["recompute"] = given.text().substr(5);
    s.recompute = Recompute::full;
    s.recompute_share =
        static_cast<double>(Asked(count, "recompute").whole(1, scenario_.model.layers)) /
        static_cast<double>(scenario_.model.layers);
  } else {
    s.recompute = recompute_of(given);
  }
}

void Resolver::batch() {
  Strategy& s = scenario_.strategy;
  s.micro_batch = whole_or("micro-batch", 1, 1 << 14, "the least memory");
  if (const Asked given = asked("global-batch")) {
    s.global_batch = given.whole(1, max_batch);
  } else {
    // Whole rounds of micro-batches over the data-parallel ranks, and over the stages, since an
    // interleaved pipeline needs that.
    const std::int64_t round = s.dp * s.micro_batch * s.pp;
    s.global_batch = std::max<std::int64_t>(1, default_step_tokens / s.seq_len / round) * round;
    assume("global-batch", std::to_string(s.global_batch),
           fmt::format("{:.3g} Mi tokens a step", static_cast<double>(s.global_batch) *
                                                      static_cast<double>(s.seq_len) / (1 << 20)));
  }
  if (s.micro_batch * s.seq_len > (std::int64_t{1} << 28)) {
    throw InputError("a micro-batch of more than 268435456 tokens",
                     fmt::format("{} sequences of {}", s.micro_batch, s.seq_len), "make it smaller",
                     request_.place_of("micro-batch"));
  }
}

// Chunks of layers a stage that the framework's users choose: the most that divide the layers
// evenly (embedding and head counted where that needs them) and keep `layers_per_chunk`, where the
// micro-batches allow interleaving.
std::int64_t Resolver::usual_chunks() const {
  const Strategy& s = scenario_.strategy;
  const std::int64_t least = scenario_.framework.defaults.layers_per_chunk;
  if (s.pp == 1 || least == 0 || s.micro_batches() % s.pp != 0) return 1;
  const std::int64_t layers = scenario_.model.layers;
  std::int64_t chunks = 1;
  for (std::int64_t vpp = 2; s.pp * vpp * least <= layers + 2; ++vpp) {
    const std::int64_t places = layers % (s.pp * vpp) == 0 ? layers : layers + 2;
    if (layers_fit(layers, s.pp, vpp) && s.pp * vpp * least <= places) chunks = vpp;
  }
  return chunks;
}

void Resolver::schedule() {
  Strategy& s = scenario_.strategy;
  const Asked chunks = asked("vpp");
  const Asked order = asked("schedule");
  if (order) {
    s.schedule = order.choice<Schedule>({{"gpipe", Schedule::gpipe},
                                         {"1f1b", Schedule::one_f_one_b},
                                         {"interleaved", Schedule::interleaved},
                                         {"zb-h1", Schedule::zero_bubble_h1},
                                         {"zb-v", Schedule::zero_bubble_v},
                                         {"dualpipe", Schedule::dual_pipe}});
  }
  if (chunks) {
    s.vpp = chunks.whole(1, 1024);
  } else if (order && s.schedule == Schedule::zero_bubble_v) {
    s.vpp = 2;
    assume("vpp", "2", "the two arms of the V");
  } else if (order && s.schedule == Schedule::dual_pipe) {
    s.vpp = 2;
    assume("vpp", "2", "a chunk of each copy of the model");
  } else {
    const bool one = (order && s.schedule != Schedule::interleaved) || asked("split") ||
                     asked("first-stage-layers") || asked("last-stage-layers");
    s.vpp = one ? 1 : usual_chunks();
    const bool interleaves = order && s.schedule == Schedule::interleaved && s.pp > 1;
    if (interleaves && !one && s.vpp == 1 && layers_fit(scenario_.model.layers, s.pp, 2)) s.vpp = 2;
    assume("vpp", std::to_string(s.vpp), s.vpp > 1 ? habit() : "one chunk of layers a stage");
  }
  if (!order) {
    s.schedule = s.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
    if (s.pp > 1) {
      assume("schedule", std::string(name_of(s.schedule)),
             s.vpp > 1 ? "several chunks a stage" : "the usual one");
    }
  }
}

// Layers of each chunk, where they are not divided evenly.
void Resolver::stage_layers() {
  Strategy& s = scenario_.strategy;
  const std::int64_t layers = scenario_.model.layers;
  const Asked first = asked("first-stage-layers"), last = asked("last-stage-layers");
  if (const Asked split = asked("split")) {
    refuse("first-stage-layers", "is said by --split too", "leave one out");
    refuse("last-stage-layers", "is said by --split too", "leave one out");
    for (const std::string& item : split.list()) {
      Request one = request_;
      one.values["split"] = item;
      s.stage_layers.push_back(Asked(one, "split").whole(1, layers));
    }
    const auto chunks = static_cast<std::int64_t>(s.stage_layers.size());
    if (chunks != s.pp * s.vpp) {
      split.fail(fmt::format("has {} chunks of layers, and pp x vpp is {}", chunks, s.pp * s.vpp),
                 "give the layers of each chunk in order of execution");
    }
    const std::int64_t sum =
        std::accumulate(s.stage_layers.begin(), s.stage_layers.end(), std::int64_t{0});
    if (sum != layers) {
      split.fail(fmt::format("has {} layers, and {} has {}", sum, scenario_.model.name, layers),
                 "make them add up");
    }
    s.equal_chunks = false;
    return;
  }
  if (!first && !last) return;
  const Asked& given = first ? first : last;
  if (s.vpp > 1 || s.pp < 2 + (first && last)) {
    given.fail("sets a stage apart, and no stage of one chunk is left beside it",
               "give --pp, or the layers of every chunk with --split");
  }
  const std::int64_t others = s.pp - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t rest =
      layers - (first ? first.whole(1, layers) : 0) - (last ? last.whole(1, layers) : 0);
  if (rest < others || rest % others != 0) {
    given.fail(fmt::format("leaves {} layers for {} equal stages", rest, others),
               "choose another number, or give the layers of every stage with --split");
  }
  s.stage_layers.assign(static_cast<std::size_t>(s.pp), rest / others);
  if (first) s.stage_layers.front() = first.whole(1, layers);
  if (last) s.stage_layers.back() = last.whole(1, layers);
  s.equal_chunks = false;
}

void Resolver::strategy() {
  division();
  expert_division();
  offload();
  memory_choices();
  recompute();
  batch();
  schedule();
  stage_layers();
  batch_ramp();
}

}  // namespace orrery

#include "plan/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace orrery {

std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::gpipe:
      return "gpipe";
    case Schedule::one_f_one_b:
      return "1f1b";
    case Schedule::interleaved:
      return "interleaved";
    case Schedule::zero_bubble_h1:
      return "zb-h1";
    case Schedule::zero_bubble_v:
      return "zb-v";
    case Schedule::dual_pipe:
      return "dualpipe";
  }
  return "";
}

std::string_view name_of(ContextKind kind) {
  switch (kind) {
    case ContextKind::all_gather:
      return "all-gather";
    case ContextKind::ring:
      return "ring";
    case ContextKind::ulysses:
      return "ulysses";
  }
  return "";
}

std::string_view name_of(Offload offload) {
  switch (offload) {
    case Offload::none:
      return "none";
    case Offload::optimizer:
      return "optimizer";
    case Offload::parameters:
      return "parameters";
    case Offload::activations:
      return "activations";
  }
  return "";
}

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::operators:
      return "operators";
    case Recompute::full:
      return "full";
  }
  return "";
}

bool layers_fit(std::int64_t layers, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t slots = pp * vpp;
  if (layers % slots == 0) return true;
  return pp > 1 && (layers + 2) % slots == 0;
}

namespace {

// Micro-batches x stages x chunks of a stage: a pipeline is walked one by one, and so many take
// half a second. The published run with most has 39 200 (MT-NLG 530B over 35 stages, arXiv
// 2104.04473).
constexpr std::int64_t most_passes = 1 << 17;

// "2 or 4": the values nearest below and above `wrong` that are `valid`, up to `limit`.
template <class Valid>
std::string nearest(std::int64_t wrong, std::int64_t limit, Valid valid) {
  std::vector<std::string> found;
  for (std::int64_t below = std::min(wrong - 1, limit); below >= 1; --below) {
    if (!valid(below)) continue;
    found.push_back(std::to_string(below));
    break;
  }
  for (std::int64_t above = std::max<std::int64_t>(wrong + 1, 1); above <= limit; ++above) {
    if (!valid(above)) continue;
    found.push_back(std::to_string(above));
    break;
  }
  if (found.empty()) return "none is valid here";
  return fmt::format("the nearest valid {} {}", found.size() > 1 ? "values are" : "value is",
                     fmt::join(found, " and "));
}

// The multiples of `step` around `wrong`.
std::string nearest_multiple(std::int64_t wrong, std::int64_t step) {
  const std::int64_t below = wrong / step * step;
  if (below < 1) return fmt::format("the nearest valid value is {}", below + step);
  return fmt::format("the nearest valid values are {} and {}", below, below + step);
}

// Collects the rules that one strategy breaks.
class Rules {
 public:
  Rules(const Strategy& strategy, const Architecture& model, std::int64_t gpus)
      : s_(strategy), model_(model), gpus_(gpus) {}

  std::vector<std::string> broken() {
    positive();
    if (!broken_.empty()) return broken_;  // nothing below can be divided
    ranks();
    batch();
    tensor();
    layers();
    schedule();
    sequence();
    sharding();
    return broken_;
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    broken_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void positive() {
    const std::pair<const char*, std::int64_t> values[] = {{"tp", s_.tp},
                                                           {"pp", s_.pp},
                                                           {"vpp", s_.vpp},
                                                           {"dp", s_.dp},
                                                           {"cp", s_.cp},
                                                           {"micro-batch", s_.micro_batch},
                                                           {"global-batch", s_.global_batch},
                                                           {"seq-len", s_.seq_len},
                                                           {"gpus", gpus_}};
    for (const auto& [name, value] : values) {
      if (value < 1)
        add("{} is {} (it must be at least 1); the nearest valid value is 1", name, value);
    }
    if (s_.shard_ranks < 0) {
      add("shard ranks are {} (0 means all replicas); the nearest valid value is 0",
          s_.shard_ranks);
    }
    if (!(s_.recompute_share >= 0 && s_.recompute_share <= 1)) {
      add("the recomputed share is {} (it is a share of the layers); the nearest valid value is {}",
          s_.recompute_share, s_.recompute_share > 1 ? 1 : 0);
    }
  }

  void ranks() {
    if (s_.ranks() == gpus_) return;
    const std::int64_t model = s_.tp * s_.pp * s_.cp;
    std::string hint;
    if (gpus_ % model == 0) {
      hint = fmt::format("dp = {} fits {} GPUs", gpus_ / model, gpus_);
    } else {
      hint = fmt::format("tp x pp x cp = {} divides {}, not {} GPUs", model,
                         gpus_ < model ? fmt::format("{}", model)
                                       : fmt::format("{} and {}", gpus_ / model * model,
                                                     (gpus_ / model + 1) * model),
                         gpus_);
    }
    add("tp {} x pp {} x dp {} x cp {} is {} ranks, not {} GPUs (each rank is one GPU); {}", s_.tp,
        s_.pp, s_.dp, s_.cp, s_.ranks(), gpus_, hint);
  }

  void batch() {
    const std::int64_t step = s_.dp * s_.micro_batch;
    if (s_.global_batch % step == 0) return;
    add("global batch {} is not a multiple of dp x micro-batch = {} x {} = {} (every replica runs "
        "whole micro-batches); {}",
        s_.global_batch, s_.dp, s_.micro_batch, step, nearest_multiple(s_.global_batch, step));
  }

  // Whether `value` ranks beside `others` divide the GPUs; nothing does where the others do not.
  bool divides_gpus(std::int64_t value, std::int64_t others) const {
    return gpus_ % others != 0 || gpus_ / others % value == 0;
  }

  std::string nearest_pp() const {
    return "pp: " + nearest(s_.pp, model_.layers, [&](auto pp) {
             return layers_fit(model_.layers, pp, s_.vpp) && divides_gpus(pp, s_.tp * s_.cp);
           });
  }

  std::string nearest_tp() const {
    return "tp: " + nearest(s_.tp, model_.heads, [&](auto tp) {
             return tensor_fits(tp) && divides_gpus(tp, s_.pp * s_.cp);
           });
  }

  bool tensor_fits(std::int64_t tp) const {
    return model_.heads % tp == 0 && (model_.kv_heads % tp == 0 || tp % model_.kv_heads == 0) &&
           model_.ffn % tp == 0;
  }

  void tensor() {
    if (model_.heads % s_.tp != 0) {
      add("tp {} does not divide {} attention heads (each rank holds whole heads); {}", s_.tp,
          model_.heads, nearest_tp());
    }
    if (model_.kv_heads % s_.tp != 0 && s_.tp % model_.kv_heads != 0) {
      add("tp {} neither divides {} key-value heads nor is a multiple of them (they are divided or "
          "copied whole); {}",
          s_.tp, model_.kv_heads, nearest_tp());
    }
    if (model_.ffn % s_.tp != 0) {
      add("tp {} does not divide the feed-forward width {}; {}", s_.tp, model_.ffn, nearest_tp());
    }
  }

  void layers() {
    const std::int64_t slots = s_.pp * s_.vpp;
    if (!s_.equal_chunks && model_.layers >= slots) return;
    if (layers_fit(model_.layers, s_.pp, s_.vpp)) return;
    if (model_.layers < slots) {
      add("{} layers are fewer than pp x vpp = {} x {} = {} (every chunk between embedding and "
          "head "
          "holds a layer); {}",
          model_.layers, s_.pp, s_.vpp, slots, nearest_pp());
    } else {
      add("{} layers (or {} with embedding and head as one each) do not divide by pp x vpp = {} x "
          "{} = {} (chunks hold equally many); {}",
          model_.layers, model_.layers + 2, s_.pp, s_.vpp, slots, nearest_pp());
    }
  }

  void schedule() {
    const bool interleaved = s_.schedule == Schedule::interleaved;
    const std::int64_t step = s_.dp * s_.micro_batch;
    const std::int64_t chunks = s_.pp * s_.vpp;
    if (s_.pp > 1 && chunks <= most_passes && s_.global_batch / step > most_passes / chunks) {
      add("{} micro-batches through {} chunks of layers are more than can be walked; so many "
          "chunks "
          "take global batches of up to {}",
          s_.global_batch / step, chunks, most_passes / chunks * step);
    }
    if (s_.vpp > 1 && !interleaved) {
      add("vpp {} needs the interleaved schedule, not {}; the nearest valid value is 1", s_.vpp,
          name_of(s_.schedule));
    }
    if (!interleaved) return;
    if (s_.pp == 1) {
      add("the interleaved schedule needs more than one stage (pp is 1); {}", nearest_pp());
    }
    if (s_.global_batch % step == 0 && s_.micro_batches() % s_.pp != 0) {
      add("{} micro-batches are not a multiple of pp {} (the interleaved schedule runs them in "
          "groups of pp); {}, with global batches in steps of {}",
          s_.micro_batches(), s_.pp, nearest_multiple(s_.micro_batches(), s_.pp), step * s_.pp);
    }
  }

  void sequence() {
    if (s_.sequence_parallel && s_.tp == 1) {
      add("sequence parallelism needs tensor parallelism (tp is 1); {}", nearest_tp());
    }
    // Causal attention is balanced by giving each context rank a slice of either half.
    const std::int64_t slices = s_.cp > 1 ? 2 * s_.cp : 1;
    if (s_.seq_len % slices != 0) {
      add("seq-len {} is not a multiple of 2 x cp = {} (each rank takes two slices, so that causal "
          "attention is balanced); {}",
          s_.seq_len, slices, nearest_multiple(s_.seq_len, slices));
    } else if (s_.sequence_parallel && s_.seq_len / s_.cp % s_.tp != 0) {
      add("tp {} does not divide the {} tokens that sequence parallelism gives to each context "
          "rank; seq-len: {}",
          s_.tp, s_.seq_len / s_.cp, nearest_multiple(s_.seq_len, std::lcm(slices, s_.cp * s_.tp)));
    }
  }

  void sharding() {
    const std::int64_t replicas = s_.dp * s_.cp;
    if (s_.shard_ranks == 0 || replicas % s_.shard_ranks == 0) return;
    add("{} shard ranks do not divide dp x cp = {} x {} = {} replicas; {}", s_.shard_ranks, s_.dp,
        s_.cp, replicas,
        nearest(s_.shard_ranks, replicas, [&](auto ranks) { return replicas % ranks == 0; }));
  }

  const Strategy& s_;
  const Architecture& model_;
  std::int64_t gpus_;
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> broken_rules(const Strategy& strategy, const Architecture& architecture,
                                      std::int64_t gpus) {
  return Rules(strategy, architecture, gpus).broken();
}

}  // namespace orrery

#include "plan/rules.h"

#include "plan/judge.h"

namespace orrery {

std::string nearest_multiple(std::int64_t wrong, std::int64_t step) {
  const std::int64_t below = wrong / step * step;
  if (below < 1) return fmt::format("the nearest valid value is {}", below + step);
  return fmt::format("the nearest valid values are {} and {}", below, below + step);
}

std::string listed(const std::vector<std::int64_t>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == values.size() ? " and " : ", ") + std::to_string(values[i]);
  }
  return text;
}

namespace {

void judge_counts(Judge& judge) {
  const Strategy& s = judge.s;
  const std::pair<const char*, std::int64_t> values[] = {{"tp", s.tp},
                                                         {"pp", s.pp},
                                                         {"vpp", s.vpp},
                                                         {"dp", s.dp},
                                                         {"cp", s.cp},
                                                         {"ep", s.ep},
                                                         {"etp", s.etp},
                                                         {"micro-batch", s.micro_batch},
                                                         {"global-batch", s.global_batch},
                                                         {"seq-len", s.seq_len},
                                                         {"gpus", judge.at.gpus}};
  for (const auto& [name, value] : values) {
    if (value < 1) {
      judge.add("{} is {} (it must be at least 1); the nearest valid value is 1", name, value);
    }
  }
  if (s.shard_ranks < 0) {
    judge.add("shard ranks are {} (0 means all replicas); the nearest valid value is 0",
              s.shard_ranks);
  }
  if (!(s.recompute_share >= 0 && s.recompute_share <= 1)) {
    judge.add(
        "the recomputed share is {} (it is a share of the layers); the nearest valid value is {}",
        s.recompute_share, s.recompute_share > 1 ? 1 : 0);
  }
}

void judge_ranks(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t gpus = judge.at.gpus;
  if (s.ranks() == gpus) return;
  const std::int64_t model = s.tp * s.pp * s.cp;
  std::string hint;
  if (gpus % model == 0) {
    hint = fmt::format("dp = {} fits {} GPUs", gpus / model, gpus);
  } else {
    hint = fmt::format(
        "no dp fits, since {} GPUs are not a multiple of tp x pp x cp = {}; the nearest such {}",
        gpus, model,
        gpus < model ? fmt::format("number is {}", model)
                     : fmt::format("numbers are {} and {}", gpus / model * model,
                                   (gpus / model + 1) * model));
  }
  judge.add("tp {} x pp {} x dp {} x cp {} is {} ranks, not {} GPUs (each rank is one GPU); {}",
            s.tp, s.pp, s.dp, s.cp, s.ranks(), gpus, hint);
}

void judge_batch(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t accumulation = std::max<std::int64_t>(1, s.micro_batches());
  if (const auto misfit = batch_misfit(s.global_batch, s.micro_batch, accumulation, s.dp)) {
    judge.found.push_back(*misfit);
  }
}

void judge_sharding(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t replicas = s.dp * s.cp;
  if (s.shard_ranks == 0 || replicas % s.shard_ranks == 0) return;
  judge.add("{} shard ranks do not divide dp x cp = {} x {} = {} replicas; {}", s.shard_ranks, s.dp,
            s.cp, replicas,
            nearest(s.shard_ranks, replicas, [&](auto ranks) { return replicas % ranks == 0; }));
}

}  // namespace

std::int64_t padded_vocabulary(std::int64_t vocab, std::int64_t tp, std::int64_t multiple) {
  const std::int64_t step = multiple * tp;
  return (vocab + step - 1) / step * step;
}

std::optional<std::string> batch_misfit(std::int64_t global_batch, std::int64_t micro_batch,
                                        std::int64_t accumulation, std::int64_t replicas) {
  if (micro_batch * accumulation * replicas == global_batch) return std::nullopt;
  const std::int64_t step = micro_batch * replicas;
  const std::int64_t below = global_batch / step;
  std::vector<std::string> whole;
  for (std::int64_t count = std::max<std::int64_t>(below, 1); count <= below + 1; ++count) {
    whole.push_back(fmt::format("{} = {} x {} x {}", count * step, micro_batch, count, replicas));
    if (count * step == global_batch) break;
  }
  return fmt::format(
      "global batch {} is not micro-batch x accumulation x dp = {} x {} x {} = {} (every replica "
      "runs whole micro-batches); the nearest valid {} {}",
      global_batch, micro_batch, accumulation, replicas, micro_batch * accumulation * replicas,
      whole.size() > 1 ? "values are" : "value is", fmt::join(whole, " and "));
}

std::vector<std::string> broken_rules(const Strategy& strategy, const Setting& setting) {
  Judge judge(strategy, setting);
  judge_counts(judge);
  if (!judge.found.empty()) return judge.found;  // nothing below can be divided
  judge_ranks(judge);
  judge_batch(judge);
  judge_tensor(judge);
  judge_experts(judge);
  judge_layers(judge);
  judge_schedule(judge);
  judge_context(judge);
  judge_sharding(judge);
  if (setting.model.custom) judge_custom(judge);
  judge_framework(judge);
  if (setting.eight_bit) judge_eight_bit(judge);
  return judge.found;
}

}  // namespace orrery

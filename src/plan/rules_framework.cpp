// Rules of what a framework has and has not, and of the matrix shapes that FP8 takes.
#include <numeric>

#include "plan/judge.h"

namespace orrery {
namespace {

// "1f1b or interleaved".
std::string choices(const Accepted& accepted) {
  return fmt::format("{}", fmt::join(accepted.values, " or "));
}

// Adds "FIELD VALUE is not what FRAMEWORK has WHERE (SOURCE); FIELD: CHOICES" unless the rule lets
// the value pass.
void require(Judge& judge, const FrameworkRules::Rule& rule, std::string_view field,
             std::string_view value, std::string_view where = "") {
  if (accepts(rule, value)) return;
  judge.add("{} {} is not what {} has{} ({}); {}: {}", field, value, judge.at.rules.title, where,
            rule->source, field, rule->values.empty() ? "leave it out" : choices(*rule));
}

void judge_pipelines(Judge& judge) {
  const Strategy& s = judge.s;
  const FrameworkRules& rules = judge.at.rules;
  if (s.pp == 1) return;
  if (rules.schedules && rules.schedules->values.empty()) {
    judge.add("pp is {} and {} has no pipelines ({}); pp: 1", s.pp, rules.title,
              rules.schedules->source);
    return;
  }
  require(judge, rules.schedules, "schedule", name_of(s.schedule));
  const std::string stage = std::to_string(static_cast<int>(s.zero));
  if (accepts(rules.zero, stage)) {
    require(judge, rules.zero_in_pipelines, "zero", stage, " with pp > 1");
  }
  if (accepts(rules.offload, name_of(s.offload))) {
    require(judge, rules.offload_in_pipelines, "offload", name_of(s.offload), " with pp > 1");
  }
}

void judge_context_kind(Judge& judge) {
  const Strategy& s = judge.s;
  const FrameworkRules& rules = judge.at.rules;
  if (s.cp == 1) return;
  if (rules.context && rules.context->values.empty()) {
    judge.add("cp is {} and {} has no context parallelism ({}); cp: 1", s.cp, rules.title,
              rules.context->source);
    return;
  }
  require(judge, rules.context, "context", name_of(s.context_kind));
}

void judge_expert_kinds(Judge& judge) {
  const Strategy& s = judge.s;
  const FrameworkRules& rules = judge.at.rules;
  if (s.ep > 1 && !accepts(rules.experts, "ep")) {
    judge.add("ep is {} and {} has no expert parallelism ({}); ep: 1", s.ep, rules.title,
              rules.experts->source);
  }
  if (s.etp > 1 && !accepts(rules.experts, "etp")) {
    judge.add("etp is {} and {} does not divide an expert ({}); etp: 1", s.etp, rules.title,
              rules.experts->source);
  }
  const bool whole_sequence = judge.at.model.experts.count > 0 && s.tp > 1 && !s.sequence_parallel;
  if (whole_sequence && rules.experts_with_tp && rules.experts_with_tp->has("sequence-parallel")) {
    judge.add("experts with tp {} need sequence parallelism in {} ({}); sequence-parallel: true",
              s.tp, rules.title, rules.experts_with_tp->source);
  }
}

void judge_offload(Judge& judge) {
  const Strategy& s = judge.s;
  const FrameworkRules& rules = judge.at.rules;
  require(judge, rules.offload, "offload", name_of(s.offload));
  if (s.recompute != Recompute::none) {
    require(judge, rules.offload_with_recompute, "offload", name_of(s.offload),
            " with recomputation");
  }
  if (s.offload == Offload::parameters && s.zero != Zero::weights) {
    judge.add(
        "offload of parameters needs zero 3, not {} (weights that no rank holds whole are "
        "fetched layer by layer); zero: 3, or offload optimizer",
        static_cast<int>(s.zero));
  }
  if (!s.offload_to_nvme) return;
  if (s.offload != Offload::optimizer && s.offload != Offload::parameters) {
    judge.add(
        "offload to NVMe holds the optimizer's state or parameters, not {}; offload: "
        "optimizer or parameters",
        name_of(s.offload));
  }
  if (!accepts(rules.offload_to, "nvme")) {
    judge.add("{} offloads to host memory alone ({}), not to NVMe", rules.title,
              rules.offload_to->source);
  }
}

}  // namespace

void judge_framework(Judge& judge) {
  const Strategy& s = judge.s;
  const FrameworkRules& rules = judge.at.rules;
  judge_pipelines(judge);
  require(judge, rules.zero, "zero", std::to_string(static_cast<int>(s.zero)));
  judge_context_kind(judge);
  judge_expert_kinds(judge);
  require(judge, rules.recompute, "recompute", name_of(s.recompute));
  judge_offload(judge);
}

// Each product of a step and its gradients meet every matrix both ways round, so both its sides are
// multiples of 16 (NVIDIA/TransformerEngine#1422, #1571).
void judge_eight_bit(Judge& judge) {
  const Strategy& s = judge.s;
  const Architecture& model = judge.at.model;
  const auto check = [&](const std::string& what, std::int64_t whole, std::int64_t ranks) {
    const std::int64_t part = whole / ranks;
    if (whole % ranks != 0 || (eight_bit_shape(part, part))) return;
    judge.add(
        "{} {} is no multiple of 16, which FP8 products need; {} of {} or of {}, or precision "
        "bf16",
        what, part, what, part / 16 * 16, (part / 16 + 1) * 16);
  };
  check("hidden", model.hidden, 1);
  check("heads x head_dim / tp", model.heads * model.head_dim, s.tp);
  for (const LayerRun& run : layer_runs(model)) {
    if (run.kind.ffn > 0) check("feed-forward width / tp", run.kind.ffn, s.tp);
  }
  if (model.experts.count > 0) check("experts' width / etp", model.experts.width, s.etp);
  // With sequence parallelism each rank's slice is cast before it is gathered.
  check("tokens of a micro-batch on a rank", s.micro_batch * s.seq_len,
        s.cp * (s.sequence_parallel ? s.tp : 1));
}

}  // namespace orrery

// Rules of tensor, context and expert parallelism.
#include <numeric>
#include <set>

#include "plan/judge.h"

namespace orrery {
namespace {

bool mixes_by(const Architecture& model, Mixer mixer) {
  const std::vector<LayerRun> runs = layer_runs(model);
  return std::any_of(runs.begin(), runs.end(),
                     [&](const LayerRun& run) { return run.kind.mixer == mixer; });
}

bool has_heads(const Architecture& model) {
  return mixes_by(model, Mixer::attention) || mixes_by(model, Mixer::latent_attention);
}

// Latent attention has no key-value heads to divide.
bool has_kv_heads(const Architecture& model) { return mixes_by(model, Mixer::attention); }

std::set<std::int64_t> widths_of(const Architecture& model) {
  std::set<std::int64_t> widths;
  for (const LayerRun& run : layer_runs(model)) {
    if (run.kind.ffn > 0) widths.insert(run.kind.ffn);
    if (run.kind.experts && model.experts.shared_width > 0) {
      widths.insert(model.experts.shared_width);
    }
  }
  return widths;
}

bool kv_heads_fit(const Setting& at, std::int64_t ranks) {
  if (!has_kv_heads(at.model)) return true;
  const std::int64_t heads = at.model.kv_heads;
  const FrameworkRules::Rule& rule = at.rules.kv_heads;
  return (accepts(rule, "divided") && heads % ranks == 0) ||
         (accepts(rule, "copied") && ranks % heads == 0) ||
         (accepts(rule, "one-each") && heads == ranks);
}

bool heads_fit(const Setting& at, std::int64_t ranks) {
  return !has_heads(at.model) || at.model.heads % ranks == 0;
}

bool tensor_fits(const Setting& at, std::int64_t tp) {
  const std::set<std::int64_t> widths = widths_of(at.model);
  return heads_fit(at, tp) && kv_heads_fit(at, tp) &&
         std::all_of(widths.begin(), widths.end(), [&](auto width) { return width % tp == 0; });
}

std::vector<std::int64_t> divisors(std::int64_t value) {
  std::vector<std::int64_t> found;
  for (std::int64_t by = 1; by <= value; ++by) {
    if (value % by == 0) found.push_back(by);
  }
  return found;
}

void judge_heads(Judge& judge) {
  const Architecture& model = judge.at.model;
  const std::int64_t tp = judge.s.tp;
  if (heads_fit(judge.at, tp)) return;
  std::vector<std::int64_t> by_heads = divisors(model.heads);
  std::string rest = "; " + nearest_tp(judge);
  const std::int64_t common = std::gcd(tp, model.heads);
  if (by_heads.size() <= 2) {
    rest += fmt::format(
        "; {} is prime, so only tp 1 is of use: pipeline stages (pp) or sharded weights (zero 3, "
        "FSDP) divide the model instead",
        model.heads);
  } else if (common > 1) {
    rest += fmt::format(", and tp {} leaves a factor of {} to dp or pp", common, tp / common);
  }
  std::string whole;
  if (has_kv_heads(model) && model.kv_heads < model.heads) {
    whole = fmt::format(", of them {} with whole key-value heads",
                        listed(divisors(std::gcd(model.heads, model.kv_heads))));
  }
  judge.add("tp {} does not divide {} attention heads (each rank holds whole heads; {} do{}){}", tp,
            model.heads, listed(by_heads), whole, rest);
}

void judge_kv_heads(Judge& judge) {
  const std::int64_t heads = judge.at.model.kv_heads, tp = judge.s.tp;
  if (kv_heads_fit(judge.at, tp)) return;
  const FrameworkRules& rules = judge.at.rules;
  if (accepts(rules.kv_heads, "copied")) {
    judge.add(
        "tp {} neither divides {} key-value heads nor is a multiple of them (they are divided or "
        "copied whole); {}",
        tp, heads, nearest_tp(judge));
  } else if (accepts(rules.kv_heads, "divided")) {
    judge.add("tp {} does not divide {} key-value heads ({} does not copy them: {}); {}", tp, heads,
              rules.title, rules.kv_heads->source, nearest_tp(judge));
  } else {
    judge.add("tp {} is not {}, the number of key-value heads ({} gives each GPU one: {}); {}", tp,
              heads, rules.title, rules.kv_heads->source, nearest_tp(judge));
  }
}

// What `ulysses` deals out are the heads that a tensor rank has.
void judge_dealt_heads(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t ranks = s.tp * s.cp;
  if (heads_fit(judge.at, ranks) && kv_heads_fit(judge.at, ranks)) return;
  judge.add(
      "tp x cp = {} x {} = {} does not divide {} attention heads, or neither divides nor is a "
      "multiple of {} key-value heads: ulysses deals whole heads to the context ranks; cp: {}, or "
      "context ring",
      s.tp, s.cp, ranks, judge.at.model.heads, judge.at.model.kv_heads,
      nearest(s.cp, judge.at.model.heads, [&](auto cp) {
        return heads_fit(judge.at, s.tp * cp) && kv_heads_fit(judge.at, s.tp * cp) &&
               judge.divides_gpus(cp, s.tp * s.pp);
      }));
}

void judge_expert_ranks(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t ranks = s.tp * s.cp * s.dp;
  if (s.ranks() != judge.at.gpus) return;  // another rule's, and dp is not known
  if (ranks % (s.ep * s.etp) == 0) return;
  judge.add(
      "ep x etp = {} x {} does not divide tp x cp x dp = {} x {} x {} = {} (each expert has whole "
      "replicas among them); ep: {}",
      s.ep, s.etp, s.tp, s.cp, s.dp, ranks,
      nearest(s.ep, judge.at.model.experts.count, [&](auto ep) {
        return judge.at.model.experts.count % ep == 0 && ranks % (ep * s.etp) == 0;
      }));
}

}  // namespace

std::string nearest_tp(const Judge& judge) {
  const Architecture& model = judge.at.model;
  const std::int64_t limit = has_heads(model) ? model.heads : judge.at.gpus;
  return "tp: " + nearest(judge.s.tp, limit, [&](auto tp) {
           return tensor_fits(judge.at, tp) && judge.divides_gpus(tp, judge.s.pp * judge.s.cp);
         });
}

void judge_tensor(Judge& judge) {
  const std::int64_t tp = judge.s.tp;
  judge_heads(judge);
  judge_kv_heads(judge);
  for (const std::int64_t width : widths_of(judge.at.model)) {
    if (width % tp == 0) continue;
    judge.add("tp {} does not divide the feed-forward width {}; {}", tp, width, nearest_tp(judge));
  }
}

void judge_context(Judge& judge) {
  const Strategy& s = judge.s;
  if (s.sequence_parallel && s.tp == 1) {
    judge.add("sequence parallelism needs tensor parallelism (tp is 1); {}", nearest_tp(judge));
  }
  const bool dealt = s.context_kind == ContextKind::ulysses;
  // Causal attention is balanced by giving each context rank a slice of either half; heads need no
  // such balance.
  const std::int64_t slices = s.cp > 1 ? (dealt ? s.cp : 2 * s.cp) : 1;
  if (s.seq_len % slices != 0) {
    judge.add("seq-len {} is not a multiple of {} = {} ({}); {}, so pad to {}", s.seq_len,
              dealt ? "cp" : "2 x cp", slices,
              dealt ? "each rank takes as many tokens"
                    : "each rank takes two slices, so that causal attention is balanced",
              nearest_multiple(s.seq_len, slices), (s.seq_len / slices + 1) * slices);
  } else if (s.sequence_parallel && s.seq_len / s.cp % s.tp != 0) {
    judge.add(
        "tp {} does not divide the {} tokens that sequence parallelism gives to each context rank; "
        "seq-len: {}",
        s.tp, s.seq_len / s.cp, nearest_multiple(s.seq_len, std::lcm(slices, s.cp * s.tp)));
  }
  if (dealt && s.cp > 1 && heads_fit(judge.at, s.tp)) judge_dealt_heads(judge);
}

void judge_experts(Judge& judge) {
  const Strategy& s = judge.s;
  const Experts& experts = judge.at.model.experts;
  if (experts.count == 0) {
    if (s.ep > 1) judge.add("ep is {} and the model has no experts; ep: 1", s.ep);
    if (s.etp > 1) judge.add("etp is {} and the model has no experts; etp: 1", s.etp);
    return;
  }
  if (experts.count % s.ep != 0) {
    judge.add("ep {} does not divide {} experts (each rank holds whole experts); ep: {}", s.ep,
              experts.count, nearest(s.ep, experts.count, [&](auto ep) {
                return experts.count % ep == 0 &&
                       (s.ranks() != judge.at.gpus || s.tp * s.cp * s.dp % (ep * s.etp) == 0);
              }));
  }
  if (experts.width % s.etp != 0) {
    judge.add("etp {} does not divide the experts' width {}; etp: {}", s.etp, experts.width,
              nearest(s.etp, experts.width, [&](auto etp) {
                return experts.width % etp == 0 && s.tp * s.cp * s.dp % (s.ep * etp) == 0;
              }));
  }
  judge_expert_ranks(judge);
}

}  // namespace orrery

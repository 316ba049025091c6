// What is allowed and yet costs more, or means something else, than it seems to.
#include "plan/judge.h"

namespace orrery {
namespace {

constexpr double much_padding = 0.02;  // of the vocabulary
constexpr double long_bubble = 0.3;    // of the step

// Matrix products run at full speed where widths are multiples of 64, attention kernels where heads
// are multiples of 8 (arXiv 2401.14489, sections IV and VI).
constexpr std::int64_t full_width = 64, full_head = 8;

void warn_of_shapes(Judge& judge) {
  const Architecture& model = judge.at.model;
  if (model.head_dim % full_head != 0) {
    judge.add(
        "head_dim {} is no multiple of {}: attention falls back to slower kernels; choose a "
        "count of heads that divides hidden {} by a multiple of {}",
        model.head_dim, full_head, model.hidden, full_head);
  }
  if (model.hidden % full_width != 0 && !model.custom) {
    judge.add(
        "hidden {} is no multiple of {}: every matrix product runs below its rate; {} would "
        "not",
        model.hidden, full_width, (model.hidden / full_width + 1) * full_width);
  }
}

void warn_of_padding(Judge& judge) {
  const std::int64_t vocab = judge.at.model.vocab;
  if (vocab == 0) return;
  const std::int64_t padded = padded_vocabulary(vocab, judge.s.tp, judge.at.rules.vocab_multiple);
  const double more = static_cast<double>(padded - vocab) / static_cast<double>(vocab);
  if (more <= much_padding) return;
  judge.add(
      "the vocabulary {} is padded to {} rows ({} x tp): {:.1f} % more of embedding and "
      "head; a smaller multiple or tp pads less",
      vocab, padded, judge.at.rules.vocab_multiple, 100 * more);
}

void warn_of_copies(Judge& judge) {
  const std::int64_t heads = judge.at.model.kv_heads, tp = judge.s.tp;
  if (heads < 1 || tp <= heads || judge.at.model.latent.kv_rank > 0) return;
  judge.add("tp {} keeps each of {} key-value heads {} times over; tp {} keeps each once", tp,
            heads, tp / heads, heads);
}

void warn_of_nodes(Judge& judge) {
  const Strategy& s = judge.s;
  const std::int64_t node = judge.at.gpus_per_node;
  if (s.tp > node) {
    judge.add(
        "tp {} reaches across nodes of {} GPUs: every layer waits for the network; tp up to "
        "{}, the rest by pp or cp",
        s.tp, node, node);
  }
  if (s.ep * s.etp > node) {
    judge.add(
        "ep {} x etp {} reaches across nodes of {} GPUs: tokens travel over the network twice "
        "a layer, and back; keep ep within a node where memory allows",
        s.ep, s.etp, node);
  }
}

void warn_of_length(Judge& judge) {
  const std::int64_t positions = judge.at.model.max_positions;
  if (positions < 1 || judge.s.seq_len <= positions) return;
  judge.add(
      "seq-len {} is longer than the {} positions the model was made for; extend its rotary "
      "scaling, or expect poor text",
      judge.s.seq_len, positions);
}

void warn_of_recompute(Judge& judge) {
  if (judge.s.recompute != Recompute::selective || !judge.at.fused_attention) return;
  judge.add(
      "recompute selective saves nothing: fused attention keeps no scores and recomputes them "
      "anyway; use none, or full");
}

// (p - 1) / (v m) of the time without bubble: arXiv 2104.04473, section 2.2.
void warn_of_bubble(Judge& judge) {
  const Strategy& s = judge.s;
  const bool idle = s.schedule == Schedule::gpipe || s.schedule == Schedule::one_f_one_b ||
                    s.schedule == Schedule::interleaved;
  const double idles = static_cast<double>(s.pp - 1);
  const double bubble = idles / (static_cast<double>(s.vpp * s.micro_batches()) + idles);
  if (!idle || bubble <= long_bubble) return;
  judge.add(
      "{} micro-batches through {} stages idle for {:.0f} % of the step; a larger global "
      "batch, a smaller micro-batch, fewer stages or more chunks (vpp) idle less",
      s.micro_batches(), s.pp, 100 * bubble);
}

void warn_of_gathers(Judge& judge) {
  const Strategy& s = judge.s;
  if (s.zero != Zero::weights || s.pp > 1 || s.micro_batches() < 2 || s.dp * s.cp < 2) return;
  judge.add(
      "zero 3 gathers all weights again for each of {} micro-batches; zero 2, or a larger "
      "micro-batch, gathers less often",
      s.micro_batches());
}

}  // namespace

std::vector<std::string> traps(const Strategy& strategy, const Setting& setting) {
  Judge judge(strategy, setting);
  warn_of_nodes(judge);
  warn_of_copies(judge);
  warn_of_bubble(judge);
  warn_of_gathers(judge);
  warn_of_recompute(judge);
  warn_of_padding(judge);
  warn_of_length(judge);
  warn_of_shapes(judge);
  return judge.found;
}

}  // namespace orrery

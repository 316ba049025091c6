#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "model/count.h"
#include "model/graph.h"
#include "model/layer_weights.h"

namespace orrery {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

// Keys that a token sees, on average over a sequence.
double keys_in_blocks(std::int64_t seq_len, std::int64_t block) {
  const double whole = real(seq_len / block), rest = real(seq_len % block), w = real(block);
  return (whole * w * w + rest * rest) / real(seq_len);
}

double keys_seen(const LayerKind& kind, std::int64_t seq_len, bool causal) {
  if (kind.chunked && kind.window > 0) {
    return keys_in_blocks(seq_len, kind.window) / (causal ? 2 : 1);
  }
  return attended_pairs({.batch = 1,
                         .heads = 1,
                         .kv_heads = 1,
                         .head_dim = 1,
                         .queries = seq_len,
                         .keys = seq_len,
                         .causal = causal,
                         .window = kind.window}) /
         real(seq_len);
}

// Which pairs of tokens are counted.
enum class Pairs { all, seen };

double keys_counted(const Architecture& a, const LayerKind& kind, std::int64_t seq_len,
                    Pairs pairs) {
  return pairs == Pairs::all ? real(seq_len) : keys_seen(kind, seq_len, a.causal);
}

// Widths of a head's key and value together, of all heads.
std::int64_t pair_width(const Architecture& a, Mixer mixer) {
  const LatentAttention& l = a.latent;
  if (mixer == Mixer::attention) return a.heads * 2 * a.head_dim;
  if (mixer == Mixer::latent_attention) return a.heads * (l.nope_dim + l.rope_dim + l.value_dim);
  return 0;
}

// Tokens that cross attention looks at; a source of unknown length is as long as the target.
std::int64_t source_tokens(const Architecture& a, std::int64_t seq_len) {
  const std::int64_t given = a.towers.empty() ? 0 : a.towers.front().tokens_out;
  return given > 0 ? given : seq_len;
}

// What no weight does, for one token of one layer, forward and backward: attention's products and
// the scan. Megatron-LM's mamba_layer_flops takes 7 operations a channel and state forward.
double mixing_flop(const Architecture& a, const LayerKind& kind, std::int64_t seq_len,
                   Pairs pairs) {
  if (kind.mixer == Mixer::selective_scan || kind.mixer == Mixer::dual_scan) {
    return 3 * 7 * real(a.state_space.inner * a.state_space.state);
  }
  double keys = real(pair_width(a, kind.mixer)) * keys_counted(a, kind, seq_len, pairs);
  if (kind.cross_attention) {
    keys += real(pair_width(a, Mixer::attention) * source_tokens(a, seq_len));
  }
  return 6 * keys;
}

// Of the weights that one token passes through. Cross attention's keys and values take the source's
// tokens, spread here over those of the sequence.
double matrices(const Architecture& a, const LayerKind& kind, std::int64_t seq_len) {
  const LayerWeights layer = layer_weights(a, kind);
  const double source = real(layer.source.matrices) * real(source_tokens(a, seq_len));
  return real(layer.attention.matrices + layer.state_space.matrices + layer.mlp.matrices +
              a.experts.top_k * layer.expert.matrices + layer.shared.matrices +
              layer.router.matrices) +
         source / real(seq_len);
}

double mixing_flop(const Architecture& a, std::int64_t seq_len, Pairs pairs) {
  double sum = 0;
  for (const LayerRun& run : layer_runs(a)) {
    sum += real(run.count) * mixing_flop(a, run.kind, seq_len, pairs);
  }
  return sum;
}

// What stated operators add to their matrices is counted as the file states it, by all conventions
// but 6 N.
double custom_flop(const Architecture& a) {
  double sum = 0;
  for (const CustomLayer& layer : a.custom.layers) sum += real(layer.count) * layer.training_flop();
  return sum;
}

double stack_flop(const Architecture& a, std::int64_t seq_len, Pairs pairs) {
  if (a.custom) return custom_flop(a);
  double weights = 0;
  for (const LayerRun& run : layer_runs(a)) {
    weights += real(run.count) * matrices(a, run.kind, seq_len);
  }
  return 6 * weights + mixing_flop(a, seq_len, pairs);
}

constexpr std::array<std::pair<FlopConvention, std::string_view>, 5> kConventions = {{
    {FlopConvention::full_attention, "full-attention"},
    {FlopConvention::causal_attention, "causal-attention"},
    {FlopConvention::six_n, "6n"},
    {FlopConvention::palm, "palm"},
    {FlopConvention::hardware, "hardware"},
}};

}  // namespace

std::string_view name_of(FlopConvention convention) {
  for (const auto& [value, name] : kConventions) {
    if (value == convention) return name;
  }
  return "";
}

FlopConvention flop_convention(std::string_view name) {
  std::vector<std::string> valid;
  for (const auto& [value, known] : kConventions) {
    if (known == name) return value;
    valid.emplace_back(known);
  }
  throw InputError("unknown FLOP convention " + in_quotes(name), "", "use one of " + join(valid));
}

Flop flop_per_token(const Architecture& a, std::int64_t seq_len, FlopConvention convention,
                    double recomputed) {
  EXPECT(seq_len > 0 && recomputed >= 0 && recomputed <= 1);
  const double all = 6 * real(parameters(a).active());
  const double logits = a.has_head ? 6 * real(a.hidden * a.vocab) : 0;
  switch (convention) {
    case FlopConvention::full_attention:
      return Flop(stack_flop(a, seq_len, Pairs::all) + logits);
    case FlopConvention::causal_attention:
      return Flop(stack_flop(a, seq_len, Pairs::seen) + logits);
    case FlopConvention::six_n:
      return Flop(all);
    case FlopConvention::palm:
      return Flop(all + mixing_flop(a, seq_len, Pairs::all));
    case FlopConvention::hardware:
      return Flop(stack_flop(a, seq_len, Pairs::all) * (1 + recomputed / 3) + logits);
  }
  return Flop(0);
}

Flop mtp_flop_per_token(const Architecture& a, std::int64_t seq_len) {
  const LayerKind kind = layer_runs(a).back().kind;
  const double weights = matrices(a, kind, seq_len) + real(a.hidden * (2 * a.hidden + a.vocab));
  return Flop(real(a.mtp_layers) * (6 * weights + mixing_flop(a, kind, seq_len, Pairs::seen)));
}

Flop flop_per_input(const Tower& tower) {
  EXPECT(tower.tokens > 0);
  const double stem = 6 * real(tower.patch * tower.stack.hidden);
  double projector = 0;
  for (const Tower::Projection& p : tower.projector) projector += 6 * real(p.in * p.out);
  return Flop(real(tower.tokens) * (stem + stack_flop(tower.stack, tower.tokens, Pairs::seen)) +
              real(tower.tokens_out) * projector);
}

}  // namespace orrery

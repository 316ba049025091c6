#include "model/layer_weights.h"

namespace orrery {
namespace {

Weights operator+(Weights a, Weights b) { return {a.matrices + b.matrices, a.rest + b.rest}; }

Weights linear(std::int64_t in, std::int64_t out, bool bias) {
  return {.matrices = in * out, .rest = bias ? out : 0};
}

std::int64_t query_width(const Architecture& a) { return a.heads * a.head_dim; }

Weights keys_and_values(const Architecture& a) {
  return linear(a.hidden, 2 * a.kv_heads * a.head_dim, a.qkv_bias);
}

Weights query_and_output(const Architecture& a) {
  return linear(a.hidden, query_width(a), a.qkv_bias) +
         linear(query_width(a), a.hidden, a.output_bias);
}

Weights attention(const Architecture& a) {
  const Weights sinks = {.rest = a.attention_sinks ? a.heads : 0};
  return query_and_output(a) + keys_and_values(a) + sinks;
}

// DeepSeek-V2 (arXiv 2405.04434) section 2.1.2; its code puts `attention_bias` on what goes down
// and on the output, never on what comes up or on a full-rank query.
Weights latent_attention(const Architecture& a) {
  const LatentAttention& l = a.latent;
  const std::int64_t query = a.heads * (l.nope_dim + l.rope_dim);
  const Weights queries =
      l.q_rank == 0 ? linear(a.hidden, query, false)
                    : linear(a.hidden, l.q_rank, a.qkv_bias) + linear(l.q_rank, query, false);
  return queries + linear(a.hidden, l.kv_rank + l.rope_dim, a.qkv_bias) +
         linear(l.kv_rank, a.heads * (l.nope_dim + l.value_dim), false) +
         linear(a.heads * l.value_dim, a.hidden, a.output_bias);
}

// A filter of `conv` taps on each channel, which is no matrix.
Weights convolution(const StateSpace& s, std::int64_t channels) {
  return {.rest = channels * (s.conv + (s.conv_bias ? 1 : 0))};
}

// A_log is [inner, state], D is [inner].
Weights selective_scan(const Architecture& a) {
  const StateSpace& s = a.state_space;
  return linear(a.hidden, 2 * s.inner, s.bias) + convolution(s, s.inner) +
         linear(s.inner, s.dt_rank + 2 * s.state, false) + linear(s.dt_rank, s.inner, true) +
         Weights{.rest = s.inner * (s.state + 1)} + linear(s.inner, a.hidden, s.bias);
}

// A_log, D and the bias of dt are one number a head.
Weights dual_scan(const Architecture& a) {
  const StateSpace& s = a.state_space;
  const std::int64_t mixed = s.inner + 2 * s.groups * s.state;
  return linear(a.hidden, s.inner + mixed + s.heads, s.bias) + convolution(s, mixed) +
         Weights{.rest = 3 * s.heads} + linear(s.inner, a.hidden, s.bias);
}

Weights feed_forward(const Architecture& a, std::int64_t width, bool bias) {
  const std::int64_t inputs = gated(a.activation) ? 2 : 1;
  return linear(a.hidden, inputs * width, bias) + linear(width, a.hidden, bias);
}

void add_experts(LayerWeights& layer, const Architecture& a) {
  const Experts& e = a.experts;
  layer.expert = feed_forward(a, e.width, e.bias);
  layer.router =
      linear(a.hidden, e.count, e.router_bias) + Weights{.rest = e.correction_bias ? e.count : 0};
  if (e.shared_width > 0) layer.shared = feed_forward(a, e.shared_width, e.bias);
  if (e.shared_gate) layer.shared = layer.shared + linear(a.hidden, 1, false);
}

bool has_feed_forward(const LayerKind& kind) { return kind.ffn > 0 || kind.experts; }

// A layer that only mixes, or only has a feed-forward, has the norms of one half.
std::int64_t hidden_norms(const Architecture& a, const LayerKind& kind) {
  const bool whole = kind.mixer != Mixer::none && has_feed_forward(kind);
  const std::int64_t norms = whole ? a.norms_per_layer : (a.norms_per_layer + 1) / 2;
  return norms + (kind.cross_attention ? 1 : 0);
}

// Norms inside the mixer. Those of latents and of the dual scan are RMS norms in every family.
std::int64_t inner_norms(const Architecture& a, const LayerKind& kind) {
  if (kind.mixer == Mixer::latent_attention) return a.latent.q_rank + a.latent.kv_rank;
  if (kind.mixer == Mixer::dual_scan) return a.state_space.inner;
  if (kind.mixer != Mixer::attention || !a.qk_norm) return 0;
  return (a.norm_bias ? 2 : 1) * 2 * a.head_dim;
}

}  // namespace

LayerWeights layer_weights(const Architecture& a, const LayerKind& kind) {
  LayerWeights layer;
  if (kind.mixer == Mixer::attention) layer.attention = attention(a);
  if (kind.mixer == Mixer::latent_attention) layer.attention = latent_attention(a);
  if (kind.mixer == Mixer::selective_scan) layer.state_space = selective_scan(a);
  if (kind.mixer == Mixer::dual_scan) layer.state_space = dual_scan(a);
  if (kind.cross_attention) {
    layer.attention = layer.attention + query_and_output(a);
    layer.source = keys_and_values(a);
  }
  if (kind.ffn > 0) layer.mlp = feed_forward(a, kind.ffn, a.mlp_bias);
  if (kind.experts) add_experts(layer, a);
  layer.norms = hidden_norms(a, kind) * a.hidden * (a.norm_bias ? 2 : 1) + inner_norms(a, kind);
  return layer;
}

}  // namespace orrery

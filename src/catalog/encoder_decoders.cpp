#include "catalog/encoder_decoders.h"

#include <string>
#include <utility>

namespace orrery {
namespace {

void make_decoder(Architecture& a) {
  a.causal = a.has_head = true;
  a.runs = {{{.name = "decoder", .ffn = a.ffn, .cross_attention = true}, a.layers}};
}

Tower text_encoder(Architecture stack) {
  Tower tower;
  tower.name = "encoder";
  tower.tokens = tower.tokens_out = stack.max_positions;
  tower.shares_embedding = true;
  tower.stack = std::move(stack);
  return tower;
}

struct T5Defaults {
  std::int64_t vocab, layers, heads, ffn;
  const char* feed_forward;
  bool tied;
  bool bias_per_layer;  // UMT5; else the first layer's relative positions serve all
};

// Raffel et al. 2020 (arXiv 1910.10683): RMS norms, no biases, relative positions added to the
// scores. "gated-gelu" is version 1.1.
void read_t5_feed_forward(Architecture& a, ConfigValues& values, const char* fallback) {
  const std::string key = "feed_forward_proj";
  std::string name = values.text(key, fallback);
  const bool gated = name.starts_with("gated-");
  if (gated) name.erase(0, 6);
  a.activation = values.activation_named(key, name, gated);
}

Architecture t5_stack(ConfigValues& values, const T5Defaults& fallback) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"num_layers"}, fallback.layers);
  a.hidden = values.width({"d_model"}, 512);
  a.heads = a.kv_heads = values.width({"num_heads"}, fallback.heads);
  a.head_dim = values.width({"d_kv"}, 64);  // heads of this width need not fill d_model
  a.ffn = values.width({"d_ff"}, fallback.ffn);
  a.vocab = values.rows({"vocab_size"}, fallback.vocab);
  // Not a limit: positions are relative. What the models were trained on.
  a.max_positions = values.rows({"n_positions"}, 512);
  read_t5_feed_forward(a, values, fallback.feed_forward);
  a.norm = Norm::rms_norm;
  a.positions = Positions::none;
  a.qkv_bias = a.output_bias = a.mlp_bias = a.norm_bias = false;
  return a;
}

void add_relative_positions(Architecture& a, std::int64_t buckets, bool per_layer) {
  a.extra.emplace_back("relative positions", buckets * a.heads * (per_layer ? a.layers : 1));
}

Architecture read_t5_like(ConfigValues& values, const T5Defaults& fallback) {
  Architecture decoder = t5_stack(values, fallback);
  Architecture encoder = decoder;
  decoder.layers = values.layers({"num_decoder_layers"}, decoder.layers);
  const std::int64_t buckets = values.rows({"relative_attention_num_buckets"}, 32);
  add_relative_positions(encoder, buckets, fallback.bias_per_layer);
  add_relative_positions(decoder, buckets, fallback.bias_per_layer);
  if (values.is_built_for("EncoderModel")) return encoder;  // as image generators read prompts
  decoder.tied_embeddings = values.flag("tie_word_embeddings", fallback.tied);
  make_decoder(decoder);
  decoder.towers.push_back(text_encoder(std::move(encoder)));
  return decoder;
}

// What tells BART's kin apart. Only BART's and mBART's tables of positions are trained.
struct BartKind {
  std::int64_t vocab = 50265;
  std::int64_t layers = 12;
  bool learned_positions = true;
  bool embedding_norm = true;
  bool final_norm = false;
  const char* activation = "gelu";
};

constexpr std::int64_t bart_padding_rows = 2;

struct BartSide {
  const char *layers, *heads, *ffn;
};

Architecture bart_stack(ConfigValues& values, const BartKind& kind, const BartSide& side) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({side.layers}, kind.layers);
  a.hidden = values.width({"d_model"}, 1024);
  a.heads = a.kv_heads = values.width({side.heads}, 16);
  a.head_dim = head_width(values, side.heads, a.hidden, a.heads);
  a.ffn = values.width({side.ffn}, 4096);
  a.activation = values.activation("activation_function", kind.activation);
  a.vocab = values.rows({"vocab_size"}, kind.vocab);
  a.max_positions = values.rows({"max_position_embeddings"}, 1024);
  a.positions = kind.learned_positions ? Positions::learned : Positions::none;
  a.embedding_norm = kind.embedding_norm;
  a.final_norm = kind.final_norm;
  return a;
}

Architecture read_bart_like(ConfigValues& values, const BartKind& kind) {
  Architecture encoder =
      bart_stack(values, kind, {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"});
  Architecture decoder =
      bart_stack(values, kind, {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"});
  if (kind.learned_positions) {
    encoder.position_rows = decoder.position_rows = decoder.max_positions + bart_padding_rows;
  }
  decoder.tied_embeddings = values.flag("tie_word_embeddings", true);
  make_decoder(decoder);
  decoder.towers.push_back(text_encoder(std::move(encoder)));
  return decoder;
}

// Whisper's keys have no bias (Radford et al. 2022, arXiv 2212.04356, its code): queries' and
// values' are counted apart.
void drop_key_bias(Architecture& a, std::int64_t attentions) {
  a.qkv_bias = false;
  a.extra.emplace_back("query and value biases", 2 * attentions * a.layers * a.hidden);
}

Architecture whisper_stack(ConfigValues& values, const BartSide& side, const StackShape& fallback) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({side.layers}, fallback.layers);
  a.hidden = values.width({"d_model"}, fallback.hidden);
  a.heads = a.kv_heads = values.width({side.heads}, fallback.heads);
  a.head_dim = head_width(values, side.heads, a.hidden, a.heads);
  a.ffn = values.width({side.ffn}, fallback.ffn);
  a.activation = values.activation("activation_function", "gelu");
  return a;
}

constexpr WhisperDefaults whisper_tiny = {
    .shape = {.layers = 4, .hidden = 384, .heads = 6, .ffn = 1536}, .mel_bins = 80};
constexpr std::int64_t whisper_taps = 3;  // of both convolutions; the second halves the frames

}  // namespace

Architecture read_t5(ConfigValues& values) {
  return read_t5_like(values, {32128, 6, 8, 2048, "relu", true, false});
}

// Its published sizes (300 M to 13 B) count a head of its own, as its checkpoints have.
Architecture read_mt5(ConfigValues& values) {
  return read_t5_like(values, {250112, 8, 6, 1024, "gated-gelu", false, values.family() == "umt5"});
}

Architecture read_bart(ConfigValues& values) { return read_bart_like(values, {}); }

Architecture read_mbart(ConfigValues& values) {
  return read_bart_like(values, {.final_norm = true});
}

Architecture read_pegasus(ConfigValues& values) {
  return read_bart_like(values,
                        {.learned_positions = false, .embedding_norm = false, .final_norm = true});
}

Architecture read_m2m_100(ConfigValues& values) {
  return read_bart_like(values, {.vocab = 128112,
                                 .learned_positions = false,
                                 .embedding_norm = false,
                                 .final_norm = true,
                                 .activation = "relu"});
}

Architecture read_marian(ConfigValues& values) {
  return read_bart_like(values,
                        {.vocab = 58101, .learned_positions = false, .embedding_norm = false});
}

Tower whisper_encoder(ConfigValues& values, const WhisperDefaults& fallback) {
  Tower tower;
  tower.name = "audio";
  Architecture& a = tower.stack;
  a = whisper_stack(values, {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"},
                    fallback.shape);
  tower.patch = values.small({"num_mel_bins"}, fallback.mel_bins) * whisper_taps;
  tower.tokens = tower.tokens_out = values.rows({"max_source_positions"}, 1500);
  a.max_positions = a.position_rows = tower.tokens;
  a.extra.emplace_back("convolution biases", 2 * a.hidden);
  a.extra.emplace_back("second convolution", whisper_taps * a.hidden * a.hidden);
  drop_key_bias(a, 1);
  return tower;
}

Architecture read_whisper(ConfigValues& values) {
  Architecture a = whisper_stack(
      values, {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"}, whisper_tiny.shape);
  a.vocab = values.rows({"vocab_size"}, 51865);
  a.max_positions = a.position_rows = values.rows({"max_target_positions"}, 448);
  a.tied_embeddings = values.flag("tie_word_embeddings", true);
  drop_key_bias(a, 2);
  make_decoder(a);
  a.towers.push_back(whisper_encoder(values, whisper_tiny));
  return a;
}

}  // namespace orrery

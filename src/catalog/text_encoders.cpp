#include "catalog/text_encoders.h"

#include <string>

namespace orrery {
namespace {

constexpr StackShape bert_base = {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072};

// Norms come after each half (Vaswani et al. 2017), so none is left for the end of the stack.
Architecture post_norm_stack(ConfigValues& values, const StackShape& fallback) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, fallback);
  a.activation = values.activation("hidden_act", "gelu");
  a.final_norm = false;
  a.embedding_norm = true;
  return a;
}

void add_positions(Architecture& a, std::int64_t rows, std::int64_t padding) {
  a.position_rows = rows;
  a.max_positions = rows > padding ? rows - padding : rows;
}

void add_token_types(Architecture& a, ConfigValues& values, std::int64_t fallback) {
  const std::int64_t types = values.small({"type_vocab_size"}, fallback, 0);
  if (types > 0) a.extra.emplace_back("token types", types * a.hidden);
}

// A dense layer over the first token.
void add_pooler(Architecture& a, ConfigValues& values) {
  a.extra.emplace_back("pooler", a.hidden * (a.hidden + 1));
  values.note("counted: encoder and pooler, no head");
}

struct BertDefaults {
  std::int64_t vocab, positions, types;
  std::int64_t padding;  // position rows that no token has (fairseq's models)
};

Architecture read_bert_like(ConfigValues& values, const StackShape& shape,
                            const BertDefaults& fallback) {
  Architecture a = post_norm_stack(values, shape);
  a.vocab = values.rows({"vocab_size"}, fallback.vocab);
  add_positions(a, values.rows({"max_position_embeddings"}, fallback.positions), fallback.padding);
  add_token_types(a, values, fallback.types);
  return a;
}

void refuse_other_embedding_width(const Architecture& a, ConfigValues& values,
                                  std::int64_t fallback) {
  if (values.width({"embedding_size"}, fallback) != a.hidden) {
    values.fields().fail("embedding_size",
                         "embeddings of another width than hidden_size are not supported");
  }
}

}  // namespace

Architecture read_bert(ConfigValues& values) {
  Architecture a = read_bert_like(values, bert_base, {30522, 512, 2, 0});
  add_pooler(a, values);
  return a;
}

Architecture read_roberta(ConfigValues& values) {
  Architecture a = read_bert_like(values, bert_base, {50265, 512, 2, 2});
  add_pooler(a, values);
  return a;
}

Architecture read_xlm_roberta(ConfigValues& values) {
  Architecture a = read_bert_like(values, bert_base, {30522, 512, 2, 2});
  add_pooler(a, values);
  return a;
}

Architecture read_electra(ConfigValues& values) {
  Architecture a = read_bert_like(values, {.layers = 12, .hidden = 256, .heads = 4, .ffn = 1024},
                                  {30522, 512, 2, 0});
  refuse_other_embedding_width(a, values, 128);
  values.note("counted: encoder, no head");
  return a;
}

Architecture read_distilbert(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"n_layers"}, 6);
  a.hidden = values.width({"dim"}, 768);
  a.heads = a.kv_heads = values.width({"n_heads"}, 12);
  a.head_dim = head_width(values, "n_heads", a.hidden, a.heads);
  a.ffn = values.width({"hidden_dim"}, 3072);
  a.activation = values.activation("activation", "gelu");
  a.final_norm = false;
  a.embedding_norm = true;
  a.vocab = values.rows({"vocab_size"}, 30522);
  add_positions(a, values.rows({"max_position_embeddings"}, 512), 0);
  values.note("counted: encoder, no head");
  return a;
}

// He et al. 2020 (arXiv 2006.03654): attention to content and to relative positions, whose table
// all layers share. Query and key projections of positions are those of content unless
// share_att_key is false.
Architecture read_deberta_v2(ConfigValues& values) {
  Architecture a =
      post_norm_stack(values, {.layers = 24, .hidden = 1536, .heads = 24, .ffn = 6144});
  a.vocab = values.rows({"vocab_size"}, 128100);
  refuse_other_embedding_width(a, values, a.hidden);
  a.positions = Positions::none;
  a.max_positions = values.rows({"max_position_embeddings"}, 512);
  if (values.flag("position_biased_input", true)) {
    a.positions = Positions::learned;
    a.position_rows = a.max_positions;
  }
  add_token_types(a, values, 0);
  if (values.flag("relative_attention", false)) {
    if (!values.flag("share_att_key", false)) {
      values.fields().fail("share_att_key", "projections of positions are not supported",
                           "all published models of the family share them");
    }
    // Negative, as it is published, says that the buckets are max_relative_positions.
    const auto given = values.fields().optional_in<std::int64_t>("position_buckets", -1, 100'000);
    const std::int64_t buckets = given.value_or(-1) > 0 ? *given : a.max_positions;
    a.extra.emplace_back("relative positions", 2 * buckets * a.hidden);
  }
  if (values.text("norm_rel_ebd", "none") == "layer_norm") {
    a.extra.emplace_back("relative position norm", 2 * a.hidden);
  }
  const std::int64_t kernel = values.small({"conv_kernel_size"}, 0, 0);
  if (kernel > 0) {
    const double taps = static_cast<double>(kernel) * static_cast<double>(a.hidden);
    if (taps > 1e9) values.fields().fail("conv_kernel_size", "is too wide for such a model");
    a.extra.emplace_back("convolution", a.hidden * (kernel * a.hidden + 1) + 2 * a.hidden);
  }
  values.note("counted: encoder, no head");
  return a;
}

// Warner et al. 2024 (arXiv 2412.13663): norms before each half, but the first layer's attention
// reads the embedding's norm, which so stands for the norm that this layer lacks.
Architecture read_modernbert(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, {.layers = 22, .hidden = 768, .heads = 12, .ffn = 1152});
  a.activation = values.activation("hidden_activation", "gelu", true);
  a.positions = Positions::rotary;
  a.qkv_bias = a.output_bias = values.flag("attention_bias", false);
  a.mlp_bias = values.flag("mlp_bias", false);
  a.norm_bias = values.flag("norm_bias", false);
  a.vocab = values.rows({"vocab_size"}, 50368);
  a.max_positions = values.rows({"max_position_embeddings"}, 8192);
  const std::int64_t period = values.layers({"global_attn_every_n_layers"}, 3);
  const std::int64_t window = values.rows({"local_attention"}, 128);
  for (std::int64_t layer = 0; layer < a.layers; ++layer) {
    const bool local = layer % period != 0;
    const LayerKind kind = {
        .name = local ? "local" : "global", .window = local ? window : 0, .ffn = a.ffn};
    if (!a.runs.empty() && a.runs.back().kind == kind) {
      ++a.runs.back().count;
    } else {
      a.runs.push_back({kind, 1});
    }
  }
  values.note("counted: encoder, no head");
  return a;
}

// Nussbaum et al. 2024 (arXiv 2402.01613): BERT with rotary positions and a gated feed-forward,
// under GPT-2's names of keys.
Architecture read_nomic_bert(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  a.layers = values.layers({"n_layer"}, 12);
  a.hidden = values.width({"n_embd"}, 768);
  a.heads = a.kv_heads = values.width({"n_head"}, 12);
  a.head_dim = head_width(values, "n_head", a.hidden, a.heads);
  a.ffn = values.width({"n_inner"}, 4 * a.hidden);
  const std::string activation = values.text("activation_function", "gelu");
  a.activation = activation == "swiglu" ? Activation::swiglu
                 : activation == "geglu"
                     ? Activation::geglu
                     : values.activation_named("activation_function", activation, false);
  a.positions = Positions::rotary;
  a.qkv_bias = a.output_bias = values.flag("qkv_proj_bias", true);
  a.mlp_bias = values.flag("mlp_fc1_bias", true);
  a.final_norm = false;
  a.embedding_norm = true;
  a.vocab = values.rows({"vocab_size"}, 50257);
  a.max_positions = values.rows({"n_positions"}, 1024);
  add_token_types(a, values, 2);
  values.note("counted: encoder, no head");
  return a;
}

}  // namespace orrery

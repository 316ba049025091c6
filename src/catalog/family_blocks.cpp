#include "catalog/family_blocks.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "core/fields.h"

namespace orrery {
namespace {

constexpr std::int64_t most_width = 10'000'000;

void set_biases(Architecture& a, bool bias) { a.qkv_bias = a.output_bias = a.mlp_bias = bias; }

// Norms over all heads together, or one of each head's own; `qk_norm` counts those of one head.
void widen_qk_norm(Architecture& a, const std::string& name) {
  a.qk_norm = true;
  const std::int64_t counted = (a.norm_bias ? 4 : 2) * a.head_dim;
  a.extra.emplace_back(name, a.layers * ((a.heads + a.kv_heads) * a.head_dim - counted));
}

}  // namespace

void read_chatglm(DecoderValues& values, Architecture& a) {
  a.qkv_bias = values.flag("add_qkv_bias", false) || values.flag("add_bias_linear", false);
  a.output_bias = a.mlp_bias = values.flag("add_bias_linear", false);
  if (!values.flag("rmsnorm", true)) {
    a.norm = Norm::layer_norm;
    a.norm_bias = true;
  }
  a.final_norm = values.flag("post_layer_norm", true);
}

void read_cohere(DecoderValues& values, Architecture& a) {
  if (values.flag("use_qk_norm", false)) widen_qk_norm(a, "norms of each head");
}

void read_dbrx(DecoderValues& values, Architecture& a) {
  ConfigValues attention = values.nested("attn_config", values.family());
  a.kv_heads = attention.width({"kv_n_heads"}, 1);
}

void read_ernie(DecoderValues& values, Architecture& a) {
  set_biases(a, values.flag("use_bias", false));
}

void read_falcon(DecoderValues& values, Architecture& a) {
  set_biases(a, values.flag("bias", false));
  if (values.flag("alibi", false)) a.positions = Positions::alibi;
  const bool newer = values.flag("new_decoder_architecture", false);
  if (!newer) a.kv_heads = values.flag("multi_query", true) ? 1 : a.heads;
  a.parallel_block = newer || values.flag("parallel_attn", true);
  const auto norms = values.find({"num_ln_in_parallel_attn"}, 1, 2);
  a.norms_per_layer = !a.parallel_block ? 2 : newer ? static_cast<int>(norms.value_or(2)) : 1;
}

void read_glm4_moe(DecoderValues& values, Architecture& a) {
  a.qk_norm = values.flag("use_qk_norm", false);
  a.mtp_layers = values.find({"num_nextn_predict_layers"}, 0, 100).value_or(0);
}

void read_gpt_bigcode(DecoderValues& values, Architecture& a) {
  a.kv_heads = values.flag("multi_query", true) ? 1 : a.heads;
}

void read_gpt_neox(DecoderValues& values, Architecture& a) {
  a.parallel_block = values.flag("use_parallel_residual", true);
}

void read_gpt_oss(DecoderValues&, Architecture& a) { a.attention_sinks = true; }

void read_hunyuan(DecoderValues& values, Architecture& a) {
  a.qk_norm = values.flag("use_qk_norm", true);
}

void read_internlm(DecoderValues& values, Architecture& a) {
  a.qkv_bias = a.output_bias = values.flag("bias", true);
}

void read_internlm2(DecoderValues& values, Architecture& a) {
  a.qkv_bias = a.output_bias = values.flag("bias", false);
}

void read_internlm3(DecoderValues& values, Architecture& a) {
  a.qkv_bias = values.flag("qkv_bias", false);
  a.output_bias = a.mlp_bias = values.flag("bias", false);
}

// DeepSeek-V2 (arXiv 2405.04434), section 2.1. An absent q_lora_rank is the null of the smaller
// models, whose queries have full rank.
void read_latent(DecoderValues& values, Architecture& a) {
  LatentAttention& latent = a.latent;
  latent.kv_rank = values.width({"kv_lora_rank"}, 512);
  latent.q_rank = values.find({"q_lora_rank"}, 1, most_width).value_or(0);
  if (!values.has("q_lora_rank")) values.note("q_lora_rank = none");
  latent.nope_dim = values.width({"qk_nope_head_dim"}, 128);
  latent.rope_dim = values.width({"qk_rope_head_dim"}, 64);
  latent.value_dim = values.width({"v_head_dim"}, 128);
  a.head_dim = latent.nope_dim + latent.rope_dim;
  a.kv_heads = a.heads;
  a.mtp_layers = values.find({"num_nextn_predict_layers"}, 0, 100).value_or(0);
}

void read_megatron(DecoderValues& values, Architecture& a) {
  set_biases(a, values.flag("add_bias_linear", true));
  Fields& fields = values.fields();
  a.norm = fields.choice<Norm>("normalization",
                               {{"LayerNorm", Norm::layer_norm}, {"RMSNorm", Norm::rms_norm}},
                               Norm::layer_norm);
  a.norm_bias = a.norm == Norm::layer_norm;
  a.positions = fields.choice<Positions>("position_embedding_type",
                                         {{"learned_absolute", Positions::learned},
                                          {"rope", Positions::rotary},
                                          {"alibi", Positions::alibi},
                                          {"none", Positions::none}},
                                         Positions::learned);
  a.qk_norm = values.flag("qk_layernorm", false);
}

void read_mpt(DecoderValues& values, Architecture& a) {
  const bool bias = !values.flag("no_bias", true);
  set_biases(a, bias);
  a.norm_bias = bias;
  auto attention = values.fields().optional_nested("attn_config");
  const auto alibi = attention ? attention->optional<bool>("alibi") : std::nullopt;
  if (!alibi) values.note("attn_config.alibi = true");
  a.positions = Positions::alibi;
  if (!alibi.value_or(true)) {
    a.positions = values.flag("learned_pos_emb", true) ? Positions::learned : Positions::none;
  }
  if (attention && attention->optional<bool>("qk_ln", false)) {
    values.fail("attn_config.qk_ln", "norms over all heads together are not supported");
  }
}

// Its norms have neither weight nor bias.
void read_olmo(DecoderValues&, Architecture& a) {
  a.norms_per_layer = 0;
  a.final_norm = false;
}

void read_opt(DecoderValues& values, Architecture& a) {
  const auto projection = values.find({"word_embed_proj_dim"}, 1, most_width);
  if (projection && *projection != a.hidden) {
    values.fail("word_embed_proj_dim",
                "embeddings of another width than hidden_size are not supported");
  }
  set_biases(a, values.flag("enable_bias", true));
  a.final_norm = values.flag("do_layer_norm_before", true);
}

void read_phi(DecoderValues& values, Architecture& a) {
  a.qk_norm = values.flag("qk_layernorm", false);
}

void read_phimoe(DecoderValues& values, Architecture& a) {
  a.head_bias = values.flag("lm_head_bias", false);
}

// Its key holds the width of both inner matrices together.
void read_qwen(DecoderValues& values, Architecture& a) {
  if (a.ffn % 2 != 0) values.fail("intermediate_size", "must be even: it is that of two matrices");
  a.ffn /= 2;
  a.output_bias = a.mlp_bias = !values.flag("no_bias", true);
}

void read_qwen2_moe(DecoderValues& values, Architecture& a) {
  a.qkv_bias = values.flag("qkv_bias", true);
}

void read_seed_oss(DecoderValues& values, Architecture& a) {
  a.output_bias = values.flag("attention_out_bias", false);
}

void read_stablelm(DecoderValues& values, Architecture& a) {
  a.qkv_bias = values.flag("use_qkv_bias", false);
  a.parallel_block = values.flag("use_parallel_residual", false);
  if (a.parallel_block) a.norms_per_layer = 1;
  if (values.flag("qk_layernorm", false)) widen_qk_norm(a, "norms of each head");
}

void read_starcoder2(DecoderValues& values, Architecture& a) {
  set_biases(a, values.flag("use_bias", true));
}

void read_wide_qk_norm(DecoderValues&, Architecture& a) {
  widen_qk_norm(a, "norms over all heads together");
}

}  // namespace orrery

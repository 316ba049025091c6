#include "catalog/decoder_from_config.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/decoder_values.h"
#include "catalog/experts_from_config.h"
#include "catalog/layers_from_config.h"
#include "core/text.h"

namespace orrery {
namespace {

constexpr std::int64_t most_width = 10'000'000;

class DecoderReader {
 public:
  DecoderReader(Fields fields, const Family& family)
      : nested_(!fields.where().path.empty()),
        family_(family),
        values_(std::move(fields), std::string(family.name), a_.defaults) {}

  Architecture read() {
    a_.name = a_.family = family_.name;
    read_shape();
    // Before any product is taken.
    refuse_too_many_weights(a_, values_.fields().where().place);
    read_block();
    if (family_.read_block) family_.read_block(values_, a_);
    if (a_.positions == Positions::learned) {
      a_.position_rows = a_.max_positions + (is("opt") ? 2 : 0);  // its first two are padding
    }
    check_heads();
    read_layers();
    refuse_too_many_weights(a_, values_.fields().where().place);
    return std::move(a_);
  }

 private:
  using Keys = ConfigValues::Keys;

  bool is(std::string_view name) const { return family_.name == name; }

  void read_shape() {
    const Family::Sizes& sizes = family_.sizes;
    if (may_default(sizes.hidden)) {
      a_.hidden = values_.width({"hidden_size"}, sizes.hidden);
      a_.layers = values_.layers({"num_hidden_layers"}, sizes.layers);
      a_.vocab = values_.rows({"vocab_size"}, sizes.vocab);
    } else {
      a_.hidden = values_.required_width({"hidden_size", "n_embd", "n_embed", "d_model"});
      a_.layers =
          values_.required_layers({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
      a_.vocab = values_.required_rows({"vocab_size", "padded_vocab_size"});
    }
    a_.max_positions = values_.positions({"max_position_embeddings", "n_positions", "max_seq_len",
                                          "seq_length", "model_max_length", "n_ctx"},
                                         family_.max_positions);
    if (family_.attention_free) return;
    a_.heads =
        may_default(sizes.heads)
            ? values_.width({"num_attention_heads"}, sizes.heads)
            : values_.required_width({"num_attention_heads", "n_head", "n_heads", "num_heads"});
    a_.kv_heads = read_kv_heads();
    a_.head_dim = is_latent() ? 1 : read_head_dim();  // read_latent knows it
    a_.ffn = read_ffn();
  }

  bool may_default(std::int64_t size) const { return nested_ && size > 0; }

  std::int64_t read_kv_heads() {
    if (is("mpt")) return read_mpt_kv_heads();
    if (is("chatglm")) return read_chatglm_kv_heads();
    // Other keys say it; see family_blocks.h.
    if (is("dbrx") || is("gpt_bigcode")) return a_.heads;
    const Keys keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
    // Written as null it means all heads, whatever an absent key means.
    if (values_.is_null(keys)) return a_.heads;
    return values_.width(keys, family_.kv_heads ? family_.kv_heads : a_.heads);
  }

  std::int64_t read_mpt_kv_heads() {
    auto attention = values_.fields().optional_nested("attn_config");
    if (!attention) return a_.heads;
    const auto type = attention->optional<std::string>("attn_type", "multihead_attention");
    if (type == "multiquery_attention") return 1;
    return attention->optional_in<std::int64_t>("kv_n_heads", 1, most_width).value_or(a_.heads);
  }

  std::int64_t read_chatglm_kv_heads() {
    if (!values_.flag("multi_query_attention", false)) return a_.heads;
    return values_.width({"multi_query_group_num"}, 1);
  }

  std::int64_t read_head_dim() {
    if (const auto given =
            values_.find({"head_dim", "kv_channels", "attention_head_dim"}, 1, most_width)) {
      return *given;
    }
    if (family_.head_dim) {
      values_.note("head_dim = " + std::to_string(family_.head_dim));
      return family_.head_dim;
    }
    if (a_.hidden % a_.heads != 0) {
      values_.fail(
          "num_attention_heads",
          std::to_string(a_.heads) + " heads do not divide the width " + std::to_string(a_.hidden),
          "give head_dim if that is meant");
    }
    return a_.hidden / a_.heads;
  }

  bool is_latent() const { return is("deepseek_v2") || is("deepseek_v3"); }

  std::int64_t read_ffn() {
    if (is("mpt")) return read_mpt_ffn();
    if (is("dbrx")) {
      return values_.nested("ffn_config", "dbrx").width({"ffn_hidden_size"}, 3584);
    }
    // Its intermediate_size is an expert's.
    if (is("llama4_text")) return values_.width({"intermediate_size_mlp"}, 16384);
    const Keys keys = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
    if (family_.four_times) return values_.width(keys, 4 * a_.hidden);
    if (may_default(family_.sizes.ffn)) return values_.width(keys, family_.sizes.ffn);
    return values_.required_width(keys);
  }

  std::int64_t read_mpt_ffn() {
    const auto ratio = values_.fields().optional_in<double>("expansion_ratio", 1e-3, 1e3);
    if (!ratio) values_.note("expansion_ratio = 4");
    const double ffn = ratio.value_or(4) * static_cast<double>(a_.hidden);
    if (ffn < 1 || std::abs(ffn - std::round(ffn)) > 1e-6) {
      values_.fail("expansion_ratio", "does not give a whole feed-forward width");
    }
    return std::llround(ffn);
  }

  void read_block() {
    if (!family_.attention_free) a_.activation = read_activation();
    a_.norm = family_.norm;
    a_.positions = family_.positions;
    a_.tied_embeddings = values_.flag("tie_word_embeddings", family_.tied);
    a_.qkv_bias = family_.qkv_bias;
    a_.output_bias = family_.output_bias;
    a_.mlp_bias = family_.mlp_bias;
    a_.norm_bias = family_.norm_bias;
    a_.head_bias = family_.head_bias;
    a_.qk_norm = family_.qk_norm;
    a_.parallel_block = family_.parallel_block;
    a_.norms_per_layer = family_.norms_per_layer;
    a_.embedding_norm = family_.embedding_norm;
    if (family_.attention_bias != BiasKey::none) {
      a_.qkv_bias = values_.flag("attention_bias", family_.qkv_bias);
      if (family_.attention_bias == BiasKey::all) a_.output_bias = a_.qkv_bias;
    }
    if (family_.mlp_bias_key) a_.mlp_bias = values_.flag("mlp_bias", family_.mlp_bias);
  }

  Activation read_activation() {
    std::string name(family_.activation);
    std::string_view key = "hidden_act";
    bool given = false;
    for (const std::string_view other :
         {"hidden_activation", "hidden_act", "activation_function", "mlp_hidden_act"}) {
      const auto text = values_.fields().optional<std::string>(other);
      if (!text || given) continue;
      name = *text;
      key = other;
      given = true;
    }
    if (!given) values_.note(std::string(key) + " = " + name);
    if (!family_.gated && name == "relu2") return Activation::squared_relu;
    // Megatron-LM's GPT takes gated activations too.
    if (is("megatron_gpt") && name == "swiglu") return Activation::swiglu;
    if (is("megatron_gpt") && name == "geglu") return Activation::geglu;
    return values_.activation_named(key, name, family_.gated);
  }

  void check_heads() {
    if (family_.attention_free) return;
    if (a_.kv_heads > a_.heads || a_.heads % a_.kv_heads != 0) {
      values_.fail("num_key_value_heads", std::to_string(a_.kv_heads) +
                                              " key-value heads do not divide " +
                                              std::to_string(a_.heads) + " heads");
    }
  }

  void read_layers() {
    std::vector<LayerKind> kinds(static_cast<std::size_t>(a_.layers), LayerKind{.ffn = a_.ffn});
    read_windows(values_, family_, a_, kinds);
    read_experts(values_, family_.name, a_, kinds);
    if (family_.read_layers) family_.read_layers(values_, a_, kinds);
    if (a_.latent.kv_rank == 0 && values_.fields().optional_json("kv_lora_rank")) {
      values_.fail("kv_lora_rank",
                   "the family " + std::string(family_.name) + " has no latent attention");
    }
    set_runs(a_, std::move(kinds));
  }

  bool nested_;
  const Family& family_;
  Architecture a_;
  DecoderValues values_;
};

}  // namespace

Architecture decoder_from_config(Fields fields, const Family& family) {
  return DecoderReader(std::move(fields), family).read();
}

}  // namespace orrery

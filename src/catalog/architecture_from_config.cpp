#include "catalog/architecture_from_config.h"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "catalog/families.h"
#include "core/error.h"
#include "core/fields.h"
#include "core/text.h"

namespace orrery {
namespace {

using Keys = std::initializer_list<std::string_view>;

constexpr std::int64_t most_width = 10'000'000;
constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_positions = 1'000'000'000;
constexpr double most_weights = 1e18;

std::string as_text(bool value) { return value ? "true" : "false"; }
std::string as_text(std::int64_t value) { return std::to_string(value); }
std::string as_text(std::string_view value) { return std::string(value); }

[[noreturn]] void fail_unsupported(const std::string& what, const std::string& place) {
  throw InputError(what + " not supported yet", "dense decoders are: " + join(supported_families()),
                   "", place);
}

class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& place) : fields_(config, place) {}

  Architecture read() {
    choose_family();
    refuse_other_kinds();
    read_shape();
    read_options();
    read_family_options();
    check_shape();
    return std::move(a_);
  }

 private:
  void choose_family() {
    a_.family = fields_.required<std::string>("model_type");
    family_ = find_family(a_.family);
    if (!family_) {
      fail_unsupported("the family " + in_quotes(a_.family) + " is",
                       fields_.where().key("model_type").text());
    }
    a_.family = family_->name;
    a_.name = a_.family;
  }

  // A supported family's name over something that is not a dense decoder.
  void refuse_other_kinds() {
    for (const std::string_view key :
         {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}) {
      if (fields_.optional<std::int64_t>(key, 0) > 1) refuse(key, "a mixture of experts is");
    }
    if (fields_.optional_json("kv_lora_rank")) refuse("kv_lora_rank", "latent attention is");
    if (fields_.optional_json("vision_config")) refuse("vision_config", "a vision tower is");
    if (fields_.optional<bool>("is_encoder_decoder", false)) {
      refuse("is_encoder_decoder", "an encoder is");
    }
  }

  [[noreturn]] void refuse(std::string_view key, const std::string& what) {
    fail_unsupported(what, fields_.where().key(key).text());
  }

  void read_shape() {
    a_.hidden = required({"hidden_size", "n_embd", "n_embed", "d_model"}, most_width);
    a_.layers = required({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, most_layers);
    a_.heads = required({"num_attention_heads", "n_head", "n_heads"}, most_width);
    a_.vocab = required({"vocab_size"}, most_width * 10);
    a_.kv_heads = read_kv_heads();
    a_.head_dim = read_head_dim();
    a_.ffn = read_ffn();
    a_.max_positions =
        integer({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"},
                most_positions, family_->max_positions);
  }

  std::int64_t read_kv_heads() {
    if (is("falcon")) return read_falcon_kv_heads();
    if (is("mpt")) return read_mpt_kv_heads();
    const Keys keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
    // Written as null it means all heads, whatever an absent key means.
    for (const std::string_view key : keys) {
      if (fields_.has(key) && !fields_.optional_json(key)) return a_.heads;
    }
    return integer(keys, most_width, family_->kv_heads ? family_->kv_heads : a_.heads);
  }

  std::int64_t read_falcon_kv_heads() {
    const Keys keys = {"num_kv_heads", "n_head_kv", "num_key_value_heads"};
    if (flag("new_decoder_architecture", false)) return integer(keys, most_width, a_.heads);
    return flag("multi_query", true) ? 1 : a_.heads;
  }

  std::int64_t read_mpt_kv_heads() {
    auto attention = fields_.optional_nested("attn_config");
    if (!attention) return a_.heads;
    const auto type = attention->optional<std::string>("attn_type", "multihead_attention");
    if (type == "multiquery_attention") return 1;
    return attention->optional_in<std::int64_t>("kv_n_heads", 1, most_width).value_or(a_.heads);
  }

  std::int64_t read_head_dim() {
    if (const auto given = fields_.optional_in<std::int64_t>("head_dim", 1, most_width)) {
      return *given;
    }
    if (family_->head_dim) {
      note("head_dim", family_->head_dim);
      return family_->head_dim;
    }
    if (a_.hidden % a_.heads != 0) {
      fields_.fail("num_attention_heads",
                   as_text(a_.heads) + " heads do not divide the width " + as_text(a_.hidden),
                   "give head_dim if that is meant");
    }
    return a_.hidden / a_.heads;
  }

  std::int64_t read_ffn() {
    if (is("mpt")) return read_mpt_ffn();
    const Keys keys = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
    if (!family_->four_times) return required(keys, most_width * 10);
    return integer(keys, most_width * 10, 4 * a_.hidden);
  }

  std::int64_t read_mpt_ffn() {
    const auto ratio = fields_.optional_in<double>("expansion_ratio", 1e-3, 1e3);
    if (!ratio) note("expansion_ratio", std::int64_t{4});
    const double ffn = ratio.value_or(4) * static_cast<double>(a_.hidden);
    if (ffn < 1 || std::abs(ffn - std::round(ffn)) > 1e-6) {
      fields_.fail("expansion_ratio", "does not give a whole feed-forward width");
    }
    return std::llround(ffn);
  }

  void read_options() {
    a_.activation = read_activation();
    a_.norm = family_->norm;
    a_.positions = family_->positions;
    a_.tied_embeddings = flag("tie_word_embeddings", family_->tied);
    a_.qkv_bias = family_->qkv_bias;
    a_.output_bias = family_->output_bias;
    a_.mlp_bias = family_->mlp_bias;
    a_.norm_bias = family_->norm_bias;
    a_.head_bias = family_->head_bias;
  }

  Activation read_activation() {
    const Keys keys = {"hidden_activation", "hidden_act", "activation_function"};
    std::string name(family_->activation);
    std::string_view key = "hidden_act";
    bool given = false;
    for (const std::string_view other : keys) {
      if (const auto text = fields_.optional<std::string>(other); text && !given) {
        name = *text;
        key = other;
        given = true;
      }
    }
    if (!given) note(key, name);
    const bool gelu = name.starts_with("gelu");
    if (family_->gated) {
      if (name == "silu" || name == "swish") return Activation::swiglu;
      if (gelu) return Activation::geglu;
    } else {
      if (gelu) return Activation::gelu;
      if (name == "relu") return Activation::relu;
      if (name == "relu2") return Activation::squared_relu;
      if (is("megatron_gpt") && name == "swiglu") return Activation::swiglu;
      if (is("megatron_gpt") && name == "geglu") return Activation::geglu;
    }
    fields_.fail(key, "the activation " + in_quotes(name) + " is not supported in " + a_.family);
  }

  void read_family_options() {
    if (is("llama") || is("qwen3") || is("gemma") || is("nemotron") || is("gpt_neox")) {
      a_.qkv_bias = a_.output_bias = flag("attention_bias", family_->qkv_bias);
    }
    if (is("llama") || is("nemotron")) a_.mlp_bias = flag("mlp_bias", false);
    if (is("qwen3")) a_.qk_norm = true;
    if (is("gpt_neox")) a_.parallel_block = flag("use_parallel_residual", true);
    if (is("phi")) read_phi();
    if (is("falcon")) read_falcon();
    if (is("bloom")) a_.embedding_norm = true;
    if (is("opt")) read_opt();
    if (is("mpt")) read_mpt();
    if (is("megatron_gpt")) read_megatron();
    a_.sliding_window = read_sliding_window();
    if (a_.positions == Positions::learned) {
      a_.position_rows = a_.max_positions + (is("opt") ? 2 : 0);  // its first two rows are padding
    }
  }

  void read_phi() {
    a_.parallel_block = true;
    a_.norms_per_layer = 1;
    a_.qk_norm = flag("qk_layernorm", false);
  }

  void read_falcon() {
    a_.qkv_bias = a_.output_bias = a_.mlp_bias = flag("bias", false);
    if (flag("alibi", false)) a_.positions = Positions::alibi;
    const bool newer = flag("new_decoder_architecture", false);
    a_.parallel_block = newer || flag("parallel_attn", true);
    const auto norms = fields_.optional_in<std::int64_t>("num_ln_in_parallel_attn", 1, 2);
    a_.norms_per_layer = !a_.parallel_block ? 2 : newer ? static_cast<int>(norms.value_or(2)) : 1;
  }

  void read_opt() {
    const auto projection = fields_.optional_in<std::int64_t>("word_embed_proj_dim", 1, most_width);
    if (projection && *projection != a_.hidden) {
      fields_.fail("word_embed_proj_dim",
                   "embeddings of another width than hidden_size are not "
                   "supported");
    }
    a_.qkv_bias = a_.output_bias = a_.mlp_bias = flag("enable_bias", true);
    a_.final_norm = flag("do_layer_norm_before", true);
  }

  void read_mpt() {
    const bool bias = !flag("no_bias", true);
    a_.qkv_bias = a_.output_bias = a_.mlp_bias = a_.norm_bias = bias;
    auto attention = fields_.optional_nested("attn_config");
    const auto alibi = attention ? attention->optional<bool>("alibi") : std::nullopt;
    if (!alibi) note("attn_config.alibi", true);
    a_.positions = Positions::alibi;
    if (!alibi.value_or(true)) {
      a_.positions = flag("learned_pos_emb", true) ? Positions::learned : Positions::none;
    }
    if (attention && attention->optional<bool>("qk_ln", false)) {
      fields_.fail("attn_config.qk_ln", "norms over all heads together are not supported");
    }
  }

  void read_megatron() {
    const bool bias = flag("add_bias_linear", true);
    a_.qkv_bias = a_.output_bias = a_.mlp_bias = bias;
    a_.norm = fields_.choice<Norm>("normalization",
                                   {{"LayerNorm", Norm::layer_norm}, {"RMSNorm", Norm::rms_norm}},
                                   Norm::layer_norm);
    a_.norm_bias = a_.norm == Norm::layer_norm;
    a_.positions = fields_.choice<Positions>("position_embedding_type",
                                             {{"learned_absolute", Positions::learned},
                                              {"rope", Positions::rotary},
                                              {"alibi", Positions::alibi},
                                              {"none", Positions::none}},
                                             Positions::learned);
    a_.qk_norm = flag("qk_layernorm", false);
  }

  std::int64_t read_sliding_window() {
    const bool by_switch = is("qwen2") || is("qwen3");
    if (!by_switch && !is("mistral") && !is("phi3")) return 0;
    if (by_switch && !flag("use_sliding_window", false)) return 0;
    auto window = fields_.optional_in<std::int64_t>("sliding_window", 1, most_positions);
    if (!window && by_switch) window = 4096;
    if (!window && is("mistral") && !fields_.has("sliding_window")) {
      note("sliding_window", std::int64_t{4096});
      window = 4096;
    }
    const std::int64_t size = window.value_or(0);
    return size >= a_.max_positions ? 0 : size;  // a window over everything is none
  }

  void check_shape() {
    if (a_.kv_heads > a_.heads || a_.heads % a_.kv_heads != 0) {
      fields_.fail("num_key_value_heads", as_text(a_.kv_heads) + " key-value heads do not divide " +
                                              as_text(a_.heads) + " heads");
    }
    const double hidden = static_cast<double>(a_.hidden);
    const double attention =
        4 * hidden * static_cast<double>(a_.heads) * static_cast<double>(a_.head_dim);
    const double mlp = 3 * hidden * static_cast<double>(a_.ffn);
    const double embeddings = 2 * hidden * static_cast<double>(a_.vocab + a_.position_rows);
    if (static_cast<double>(a_.layers) * (attention + mlp) + embeddings > most_weights) {
      throw InputError("such a model would have more than 1e18 weights", "", "",
                       fields_.where().text());
    }
  }

  bool is(std::string_view name) const { return family_->name == name; }

  // The value under whichever of its names the configuration uses.
  std::optional<std::int64_t> find(Keys keys, std::int64_t most) {
    std::optional<std::int64_t> found;
    std::string_view found_key;
    for (const std::string_view key : keys) {
      const auto value = fields_.optional_in<std::int64_t>(key, 1, most);
      if (!value) continue;
      if (found && *found != *value) {
        fields_.fail(key, as_text(*value) + " disagrees with " + std::string(found_key) + " = " +
                              as_text(*found));
      }
      if (!found) found_key = key;
      found = value;
    }
    return found;
  }

  std::int64_t required(Keys keys, std::int64_t most) {
    if (const auto value = find(keys, most)) return *value;
    std::vector<std::string> names(keys.begin(), keys.end());
    fields_.fail(*keys.begin(), "missing",
                 names.size() > 1 ? "any of its names will do: " + join(names) : "");
  }

  std::int64_t integer(Keys keys, std::int64_t most, std::int64_t fallback) {
    if (const auto value = find(keys, most)) return *value;
    note(*keys.begin(), fallback);
    return fallback;
  }

  bool flag(std::string_view key, bool fallback) {
    if (const auto value = fields_.optional<bool>(key)) return *value;
    note(key, fallback);
    return fallback;
  }

  template <class T>
  void note(std::string_view key, const T& value) {
    const std::string text =
        std::string(key) + " = " + as_text(value) + " (" + std::string(family_->name) + ")";
    for (const std::string& other : a_.defaults) {
      if (other == text) return;
    }
    a_.defaults.push_back(text);
  }

  Fields fields_;
  const Family* family_ = nullptr;
  Architecture a_;
};

}  // namespace

Architecture architecture_from_config(const Json& config, const std::string& place) {
  return ConfigReader(config, place).read();
}

std::vector<std::string> supported_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

}  // namespace orrery

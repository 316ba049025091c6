#include "validate/dimensions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "validate/labels.h"
#include "validate/notes.h"

namespace orrery {
namespace {

constexpr std::int64_t gpt_vocab = 51200;        // GPT-2's tokenizer, padded by Megatron
constexpr std::int64_t internlm_vocab = 103168;  // the tokenizer that InternEvo trains with
constexpr std::int64_t usual_head_dim = 128;
constexpr double width_per_layer = 128;  // GPT-3, arXiv 2005.14165, table 2.1: 96 layers of 12288

std::string reason_not_decoder(const Measurement& row) {
  const std::string words = words_of(row.model + " ");
  for (const std::string_view encoder : {"bert", "roberta", "t5", "vit"}) {
    if (words.find(" " + std::string(encoder)) != std::string::npos) {
      return "not a decoder: " + row.model;
    }
  }
  for (const std::string_view hybrid : {"mamba", "hybrid", "nano", "jamba", "zamba"}) {
    if (has_word(words, hybrid) || has_word(words_of(row.other), hybrid)) {
      return "a hybrid with state-space layers: " + row.model;
    }
  }
  return "";
}

std::optional<Activation> activation_named(std::string_view name) {
  if (name.empty() || name == "gelu") return Activation::gelu;
  if (name == "swiglu") return Activation::swiglu;
  if (name == "geglu") return Activation::geglu;
  if (name == "relu") return Activation::relu;
  if (name == "sqrelu" || name == "relu2" || name == "squared_relu") {
    return Activation::squared_relu;
  }
  return std::nullopt;
}

// GPT as Megatron, DeepSpeed and llm-foundry build it.
void be_gpt(Architecture& model) {
  model.norm = Norm::layer_norm;
  model.positions = Positions::learned;
  model.position_rows = model.max_positions;
  model.tied_embeddings = true;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = true;
}

// Llama, and what resembles it.
void be_llama(Architecture& model) {
  model.norm = Norm::rms_norm;
  model.positions = Positions::rotary;
}

// Heads that divide hidden, are divided by tp, and are nearest to the usual width.
std::optional<std::int64_t> usual_heads(std::int64_t hidden, std::int64_t tp) {
  std::optional<std::int64_t> best;
  const auto off = [&](std::int64_t heads) { return std::abs(hidden / heads - usual_head_dim); };
  for (std::int64_t heads = tp; heads <= std::min<std::int64_t>(hidden, 10'000); heads += tp) {
    if (hidden % heads == 0 && (!best || off(heads) < off(*best))) best = heads;
  }
  return best;
}

class Dimensions {
 public:
  Dimensions(const Measurement& row, const std::string& framework, Defaults& defaults)
      : row_(row), notes_(row.other), framework_(framework), defaults_(defaults) {}

  std::variant<Architecture, Skip> read(std::int64_t tp, std::int64_t stages) {
    stages_ = stages;
    if (std::string reason = reason_not_decoder(row_); !reason.empty()) return Skip{reason};
    const auto activation = activation_named(row_.mlp);
    if (!activation) return Skip{"the feed-forward kind " + row_.mlp + " is not known"};
    model_.name = row_.model;
    if (std::string reason = width(); !reason.empty()) return Skip{reason};
    model_.activation = *activation;
    model_.max_positions = row_.seq_len.value_or(0);
    for (const auto step : {&Dimensions::layers, &Dimensions::feed_forward, &Dimensions::vocab}) {
      if (std::string reason = (this->*step)(); !reason.empty()) return Skip{reason};
    }
    if (std::string reason = heads(tp); !reason.empty()) return Skip{reason};
    const bool gpt = *activation == Activation::gelu || *activation == Activation::relu;
    model_.family = gpt ? "gpt2" : "llama";
    gpt ? be_gpt(model_) : be_llama(model_);
    latent();
    if (row_.experts.value_or(0) > 1) {
      if (std::string reason = experts(); !reason.empty()) return Skip{reason};
    }
    return model_;
  }

 private:
  void assume(const std::string& field, std::int64_t value, const std::string& why) {
    defaults_.push_back(field + " = " + std::to_string(value) + " (" + why + ")");
  }

  // Of a bare size label: a layer for each 128 of the width, as GPT-3 has (96 of 12288). How long a
  // step takes depends on the size, hardly on the shape.
  std::string width() {
    if (row_.hidden) return model_.hidden = *row_.hidden, "";
    if (!row_.params_b || row_.layers) return "dimensions not stated";
    const double width = std::cbrt(*row_.params_b * 1e9 / 12 * width_per_layer);
    model_.hidden = std::max<std::int64_t>(1, std::llround(width / 1024)) * 1024;
    assume("hidden", model_.hidden, "128 a layer, as GPT-3's");
    return "";
  }

  std::string layers() {
    if (row_.layers) return model_.layers = *row_.layers, "";
    if (!row_.params_b) return "dimensions not stated";
    const double hidden = static_cast<double>(model_.hidden);
    const double stages = static_cast<double>(stages_);
    const double exact = *row_.params_b * 1e9 / (12 * hidden * hidden);
    const double layers = std::max(1.0, std::round(exact / stages)) * stages;
    if (exact < 0.5 || layers > 10'000) return "params_b and hidden do not belong together";
    model_.layers = static_cast<std::int64_t>(layers);
    assume("layers", model_.layers, "params_b / 12 h^2, a multiple of pp");
    return "";
  }

  std::string heads(std::int64_t tp) {
    if (row_.heads) {
      model_.heads = *row_.heads;
    } else if (const auto heads = usual_heads(model_.hidden, tp)) {
      model_.heads = *heads;
      assume("heads", *heads, "about 128 wide");
    } else {
      return "no number of heads divides hidden and is divided by tp";
    }
    if (row_.head_dim) {
      model_.head_dim = *row_.head_dim;
    } else if (model_.hidden % model_.heads == 0) {
      model_.head_dim = model_.hidden / model_.heads;
    } else {
      return "heads do not divide hidden, and head_dim is not stated";
    }
    model_.kv_heads = row_.kv_heads.value_or(model_.heads);
    if (!row_.kv_heads) assume("kv_heads", model_.kv_heads, "as many as heads");
    if (model_.heads % model_.kv_heads != 0) return "kv_heads do not divide heads";
    return "";
  }

  std::string feed_forward() {
    if (row_.ffn_hidden) return model_.ffn = *row_.ffn_hidden, "";
    if (gated(model_.activation)) {
      model_.ffn = (model_.hidden * 8 / 3 + 255) / 256 * 256;
      assume("ffn_hidden", model_.ffn, "8/3 of hidden, in steps of 256");
    } else {
      model_.ffn = 4 * model_.hidden;
      assume("ffn_hidden", model_.ffn, "4 times hidden");
    }
    return "";
  }

  std::string vocab() {
    if (row_.vocab) return model_.vocab = *row_.vocab, "";
    const bool internlm = framework_ == "internevo";
    model_.vocab = internlm ? internlm_vocab : gpt_vocab;
    assume("vocab", model_.vocab, internlm ? "InternLM's tokenizer" : "GPT-2's tokenizer, padded");
    return "";
  }

  // "latent q 1536 kv 512 nope 128 rope 64 value 128", as DeepSeek's configurations have it.
  void latent() {
    const auto rank = notes_.number("kv");
    if (!notes_.say("latent ") || !rank) return;
    LatentAttention& latent = model_.latent;
    latent.kv_rank = *rank;
    latent.q_rank = notes_.number("q").value_or(0);
    latent.nope_dim = notes_.number("nope").value_or(usual_head_dim);
    latent.rope_dim = notes_.number("rope").value_or(usual_head_dim / 2);
    latent.value_dim = notes_.number("value").value_or(usual_head_dim);
    model_.head_dim = latent.nope_dim + latent.rope_dim;
  }

  LayerRun layers_of(std::int64_t count, bool experts) const {
    LayerKind kind;
    kind.name = experts ? "experts" : "dense";
    if (model_.latent.kv_rank > 0) kind.mixer = Mixer::latent_attention;
    kind.ffn = experts ? 0 : model_.ffn;
    kind.experts = experts;
    return {kind, count};
  }

  // Dense layers come first ("dense layers 3") or in turn ("experts every 2": the second of each
  // two has experts), if a row has any.
  std::string experts() {
    if (!row_.topk || *row_.topk > *row_.experts) return "experts a token not stated";
    Experts& experts = model_.experts;
    experts.count = *row_.experts;
    experts.top_k = *row_.topk;
    experts.width = row_.moe_ffn_hidden.value_or(model_.ffn);
    if (!row_.moe_ffn_hidden) assume("moe_ffn_hidden", experts.width, "as wide as ffn_hidden");
    experts.shared_width = notes_.number("shared experts").value_or(0) * experts.width;
    const std::int64_t dense = std::min(model_.layers, notes_.number("dense layers").value_or(0));
    const std::int64_t every = notes_.number("experts every").value_or(1);
    if (dense > 0) model_.runs.push_back(layers_of(dense, false));
    for (std::int64_t left = model_.layers - dense; left > 0; left -= every) {
      if (every == 1) {
        model_.runs.push_back(layers_of(left, true));
        break;
      }
      model_.runs.push_back(layers_of(std::min(left, every - 1), false));
      if (left >= every) model_.runs.push_back(layers_of(1, true));
    }
    model_.mtp_layers = notes_.number("mtp layers").value_or(0);
    return "";
  }

  const Measurement& row_;
  const Notes notes_;
  const std::string& framework_;
  Defaults& defaults_;
  Architecture model_;
  std::int64_t stages_ = 1;
};

}  // namespace

std::variant<Architecture, Skip> architecture_of(const Measurement& row,
                                                 const std::string& framework, std::int64_t tp,
                                                 std::int64_t pp, Defaults& defaults) {
  return Dimensions(row, framework, defaults).read(tp, pp);
}

}  // namespace orrery

// A model in one normal form, whatever family its configuration came from: a stack of layers of few
// kinds, with the towers (vision, audio, an encoder) that feed it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/custom.h"

namespace orrery {

enum class Activation { gelu, relu, squared_relu, swiglu, geglu };
enum class Norm { layer_norm, rms_norm };
enum class Positions { learned, rotary, alibi, none };

// What mixes the tokens of a layer.
enum class Mixer {
  attention,
  latent_attention,  // keys and values of low rank (DeepSeek-V2, arXiv 2405.04434, section 2.1)
  selective_scan,    // Mamba (arXiv 2312.00752)
  dual_scan,         // Mamba 2 (arXiv 2405.21060)
  none,
};

// What one layer of a stack is made of; widths that are not here are the architecture's.
struct LayerKind {
  std::string name = "decoder";  // "dense", "experts", "local", "mamba"
  Mixer mixer = Mixer::attention;
  std::int64_t window = 0;  // tokens that a token sees, itself included; 0: all before it
  bool chunked = false;     // the window is a block of the sequence, not what precedes the token
  bool rotary = true;       // of a rotary architecture: this layer turns queries and keys
  std::int64_t ffn = 0;     // width of its dense feed-forward; 0: none
  bool experts = false;     // has the architecture's routed (and shared) experts
  // A second attention, over the tower's output, of the same widths and biases, with a norm more
  // than norms_per_layer.
  bool cross_attention = false;
  bool operator==(const LayerKind&) const = default;
};

// Equal layers one after another.
struct LayerRun {
  LayerKind kind;
  std::int64_t count;
};

// A feed-forward of many experts, few of which see each token. All layers that have one are alike.
struct Experts {
  std::int64_t count = 0;  // routed; 0: the model has none
  std::int64_t top_k = 0;
  std::int64_t width = 0;         // of one routed expert's feed-forward
  std::int64_t shared_width = 0;  // of all shared experts together; every token sees them
  bool shared_gate = false;       // a [hidden, 1] gate on the shared experts (Qwen)
  bool router_bias = false;       // trained, of the router's matrix
  bool correction_bias = false;   // one untrained number an expert (DeepSeek-V3)
  bool bias = false;              // of the experts' matrices
};

// Multi-head latent attention: queries of rank q_rank (0: full), keys and values of kv_rank.
struct LatentAttention {
  std::int64_t q_rank = 0, kv_rank = 0;
  std::int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;  // a head
};

// Mamba 1 has dt_rank, Mamba 2 heads of head_dim and groups.
struct StateSpace {
  std::int64_t inner = 0, state = 0, conv = 0, dt_rank = 0;
  std::int64_t heads = 0, groups = 0;
  bool bias = false, conv_bias = true;
};

struct Tower;

struct Architecture {
  std::string name;
  std::string family;  // the Hugging Face model_type

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // divides heads; 1 is multi-query attention
  std::int64_t head_dim = 0;  // heads * head_dim need not be hidden
  std::int64_t ffn = 0;       // width between the feed-forward matrices, as stored
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  std::int64_t position_rows = 0;   // rows of the learned table; 0 unless positions are learned
  std::int64_t sliding_window = 0;  // of a uniform stack; 0: every token sees all before it

  Activation activation = Activation::gelu;
  Norm norm = Norm::layer_norm;
  Positions positions = Positions::none;

  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // attention's output projection
  bool mlp_bias = false;
  bool norm_bias = false;
  bool head_bias = false;       // the language-model head
  bool qk_norm = false;         // a norm over head_dim on queries and on keys
  bool parallel_block = false;  // attention and feed-forward read the same normed input
  int norms_per_layer = 2;      // a parallel block may share one
  bool final_norm = true;
  bool embedding_norm = false;
  bool causal = true;            // false: an encoder
  bool attention_sinks = false;  // one trained number a head (gpt-oss)
  bool has_head = true;          // logits over the vocabulary; false: its head is in `extra`
  std::int64_t mtp_layers = 0;   // multi-token prediction modules beside the main model

  // Kinds of layer in order, if they are not all alike; else empty (layer_runs says the one kind).
  std::vector<LayerRun> runs;
  Experts experts;
  LatentAttention latent;  // of the layers that mix by it
  StateSpace state_space;  // of the layers that mix by it
  std::vector<Tower> towers;
  Custom custom;  // of a model described by hand, in place of all that makes a layer above

  // Weights that fit none of the fields above, by what they are ("pooler", "token types"): counted,
  // too small to be priced.
  std::vector<std::pair<std::string, std::int64_t>> extra;

  std::vector<std::string>
      defaults;  // what the family filled in: "tie_word_embeddings = true (gpt2)"
};

// A stack whose output the main stack takes in: image patches, audio frames, or the source text of
// an encoder-decoder.
struct Tower {
  std::string name;    // "vision", "audio", "encoder"
  Architecture stack;  // causal = false, has_head = false; vocab 0 unless it reads text of its own
  std::int64_t patch = 0;   // inputs of the linear map that makes its tokens (channels x patch^2)
  std::int64_t tokens = 0;  // it works on, for one image (or clip)
  std::int64_t tokens_out = 0;  // of those that reach the main stack
  // Matrices between it and the main stack, applied to tokens_out: in x out, with biases.
  struct Projection {
    std::int64_t in, out;
    bool bias;
  };
  std::vector<Projection> projector;
  bool shares_embedding = false;  // with the main stack (T5)
};

// The layers in order; one run of one kind where `runs` is empty.
std::vector<LayerRun> layer_runs(const Architecture& architecture);
// Sum of run counts whose kind has routed experts.
std::int64_t expert_layers(const Architecture& architecture);

// Two activations multiply two projections, so their feed-forward has three matrices.
constexpr bool gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu;
}

std::string_view to_text(Activation activation);
std::string_view to_text(Norm norm);
std::string_view to_text(Positions positions);
std::string_view to_text(Mixer mixer);

}  // namespace orrery

// A dense decoder in one normal form, whatever family its configuration came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Activation { gelu, relu, squared_relu, swiglu, geglu };
enum class Norm { layer_norm, rms_norm };
enum class Positions { learned, rotary, alibi, none };

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
  std::int64_t sliding_window = 0;  // 0: every token sees all before it

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

  std::vector<std::string>
      defaults;  // what the family filled in: "tie_word_embeddings = true (gpt2)"
};

// Two activations multiply two projections, so their feed-forward has three matrices.
constexpr bool gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu;
}

std::string_view to_text(Activation activation);
std::string_view to_text(Norm norm);
std::string_view to_text(Positions positions);

}  // namespace orrery

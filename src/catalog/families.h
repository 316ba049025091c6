// What each supported decoder family's own code takes when a configuration is silent.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "catalog/architecture.h"
#include "catalog/decoder_values.h"

namespace orrery {

// Which projections of attention the key `attention_bias` speaks of.
enum class BiasKey { none, qkv, all };

// Which layers see no more than a window.
enum class Windows {
  none,
  every_layer,  // sliding_window, if it is given
  by_switch,    // the layers from max_window_layers on, if use_sliding_window
  by_pattern,   // all but every n-th layer
  chunked,      // all but every n-th layer, in blocks of attention_chunk_size
  listed,       // GPT-Neo's attention_types
};

// Which layers of a rotary architecture leave queries and keys as they are.
enum class Unturned { none, every_nth, global };

struct Family {
  std::string_view name;  // model_type

  // The block.
  std::string_view activation = "silu";  // as configurations spell it
  bool gated = true;                     // the activation multiplies a second projection
  Norm norm = Norm::rms_norm;
  Positions positions = Positions::rotary;
  bool tied = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool norm_bias = false, head_bias = false;
  BiasKey attention_bias = BiasKey::none;
  bool mlp_bias_key = false;  // `mlp_bias` is a key of the family
  int norms_per_layer = 2;
  bool qk_norm = false, parallel_block = false, embedding_norm = false;

  // The shape.
  std::int64_t max_positions = 2048;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  bool four_times = false;    // an absent feed-forward width is 4 x hidden; else it must be given
  bool attention_free = false;

  // The layers.
  Windows windows = Windows::none;
  std::int64_t window = 0;   // what an absent key means
  std::int64_t pattern = 0;  // every how many layers one is global
  Unturned unturned = Unturned::none;

  // The sizes of its configuration class. Only a text_config leaves them out: a whole config.json
  // always has them.
  struct Sizes {
    std::int64_t hidden, layers, heads, ffn, vocab;
  };
  Sizes sizes = {0, 0, 0, 0, 0};

  // Keys that only this family has, of the block and of the layers; nullptr if none.
  void (*read_block)(DecoderValues&, Architecture&) = nullptr;
  void (*read_layers)(DecoderValues&, Architecture&, std::vector<LayerKind>&) = nullptr;
};

std::span<const Family> families();
/// Under its own or an older name; nullptr if there is none.
const Family* find_family(std::string_view name);

}  // namespace orrery

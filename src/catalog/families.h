// What each supported family's own code takes when a configuration is silent.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "catalog/architecture.h"

namespace orrery {

struct Family {
  std::string_view name;        // model_type
  std::string_view activation;  // as configurations spell it
  bool gated;                   // the activation multiplies a second projection
  Norm norm;
  Positions positions;
  bool tied;
  bool qkv_bias, output_bias, mlp_bias, norm_bias, head_bias;
  std::int64_t max_positions;
  std::int64_t kv_heads;  // 0: as many as heads
  std::int64_t head_dim;  // 0: hidden / heads
  bool four_times;        // an absent feed-forward width is 4 x hidden; else it must be given
};

std::span<const Family> families();
/// nullptr if there is none of that name.
const Family* find_family(std::string_view name);

}  // namespace orrery

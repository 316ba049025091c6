#include "catalog/speech_encoders.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr std::int64_t frames_of_30_s = 1500;  // one every 20 ms (arXiv 2006.11477, section 4.2)
constexpr std::size_t most_convolutions = 64;

std::vector<std::int64_t> read_list(ConfigValues& values, std::string_view key,
                                    std::vector<std::int64_t> fallback, std::int64_t most) {
  auto list = values.fields().optional<std::vector<std::int64_t>>(key);
  if (!list) {
    values.note(std::string(key) + " of the base model");
    return fallback;
  }
  const auto fits = [most](std::int64_t value) { return value >= 1 && value <= most; };
  if (list->empty() || list->size() > most_convolutions || !std::ranges::all_of(*list, fits)) {
    values.fields().fail(key, "must list 1 to 64 numbers, each from 1 to " + std::to_string(most));
  }
  return *std::move(list);
}

// From samples of one channel to frames. Either the first convolution alone has a norm, over
// groups, or each has a layer norm.
std::int64_t add_convolutions(Architecture& a, ConfigValues& values) {
  const auto widths = read_list(values, "conv_dim", {512, 512, 512, 512, 512, 512, 512}, 100'000);
  const auto taps = read_list(values, "conv_kernel", {10, 3, 3, 3, 3, 2, 2}, 1'024);
  if (widths.size() != taps.size()) {
    values.fields().fail("conv_kernel", "must be as long as conv_dim");
  }
  const bool bias = values.flag("conv_bias", false);
  const bool norms = values.text("feat_extract_norm", "group") == "layer";
  std::int64_t in = 1, sum = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    sum += widths[i] * (in * taps[i] + (bias ? 1 : 0));
    if (norms || i == 0) sum += 2 * widths[i];
    in = widths[i];
  }
  a.extra.emplace_back("convolutions", sum);
  return in;
}

// A convolution over neighbouring frames stands for positions; its weight is held as a direction
// and a length for each tap.
void add_position_convolution(Architecture& a, ConfigValues& values) {
  const std::int64_t taps = values.small({"num_conv_pos_embeddings"}, 128);
  const std::int64_t groups = values.small({"num_conv_pos_embedding_groups"}, 16);
  if (a.hidden % groups != 0) {
    values.fields().fail(
        "num_conv_pos_embedding_groups",
        std::to_string(groups) + " groups do not divide the width " + std::to_string(a.hidden));
  }
  a.extra.emplace_back("position convolution", a.hidden * (a.hidden / groups * taps + 1) + taps);
}

}  // namespace

// Baevski et al. 2020 (arXiv 2006.11477), section 2; HuBERT (2106.07447) keeps the shape. One norm
// stands beside the layers' own: before the first where they follow each half, else after the last.
Architecture read_wav2vec2(ConfigValues& values) {
  Architecture a = encoder_stack(values.family());
  read_stack_shape(a, values, {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072});
  a.activation = values.activation("hidden_act", "gelu");
  a.positions = Positions::none;
  a.max_positions = frames_of_30_s;
  a.final_norm = values.flag("do_stable_layer_norm", false);
  a.embedding_norm = !a.final_norm;
  const std::int64_t features = add_convolutions(a, values);
  a.extra.emplace_back("feature projection", 2 * features + (features + 1) * a.hidden);
  add_position_convolution(a, values);
  a.extra.emplace_back("masked frame", a.hidden);
  if (values.is_built_for("ForCTC")) {
    a.extra.emplace_back("character head", (a.hidden + 1) * values.rows({"vocab_size"}, 32));
  }
  return a;
}

}  // namespace orrery

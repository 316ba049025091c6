#include "validate/labels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>
#include <vector>

namespace orrery {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// A run of at most nine digits at `at`, or nothing.
std::optional<std::int64_t> number_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end]) && end - at < 9) {
    value = value * 10 + (text[end++] - '0');
  }
  if (end == at) return std::nullopt;
  return value;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return contains(text, part); });
}

// A rate that a label gives: "8x400 Gb/s", "1600 Gb/s per node", "400 Gb/s per GPU".
struct Rate {
  double per_gpu;  // Gb/s
  std::size_t at;  // where its number stands
};

// How many ports the words before a rate speak of: the last "8x" since the last comma.
std::optional<std::int64_t> ports_before(std::string_view text, std::size_t rate_at) {
  std::size_t start = text.substr(0, rate_at).find_last_of(",;:");
  start = start == std::string_view::npos ? 0 : start;
  std::optional<std::int64_t> ports;
  for (std::size_t x = text.find('x', start); x < rate_at; x = text.find('x', x + 1)) {
    std::size_t first = x;
    while (first > start && is_digit(text[first - 1])) --first;
    const bool opens_word =
        first == 0 || !std::isalnum(static_cast<unsigned char>(text[first - 1]));
    if (first < x && opens_word) ports = number_at(text, first);
  }
  return ports;
}

std::vector<Rate> rates_in(std::string_view text, std::int64_t gpus_per_node) {
  std::vector<Rate> rates;
  for (std::size_t unit = text.find("gb/s"); unit != std::string_view::npos;
       unit = text.find("gb/s", unit + 4)) {
    std::size_t end = unit;
    while (end > 0 && text[end - 1] == ' ') --end;
    std::size_t first = end;
    while (first > 0 && is_digit(text[first - 1])) --first;
    const auto value = number_at(text, first);
    if (!value || first == end) continue;
    const double rate = static_cast<double>(*value);
    const double nodes = static_cast<double>(gpus_per_node);
    if (const auto ports = ports_before(text, first)) {
      rates.push_back({rate * static_cast<double>(*ports) / nodes, first});
    } else {
      const bool whole_node = text.substr(unit).find("per node") < 12;
      rates.push_back({whole_node ? rate / nodes : rate, first});
    }
  }
  return rates;
}

// In lower case, with one spelling of bit rates; rates in bytes are of links inside a node.
std::string network_text(std::string_view label) {
  std::string text(label);
  for (auto at = text.find("GB/s"); at != std::string::npos; at = text.find("GB/s")) {
    text.replace(at, 4, "bytes");
  }
  text = lower(text);
  for (auto at = text.find("gbps"); at != std::string::npos; at = text.find("gbps")) {
    text.replace(at, 4, "gb/s");
  }
  return text;
}

// Storage and management ports carry no gradients: where a label tells ports apart, only compute
// ones count.
std::string compute_part(const std::string& text) {
  for (const std::string_view mark : {"compute:", "storage&compute:", "storage+compute:"}) {
    if (const auto at = text.find(mark); at != std::string::npos) {
      const std::string part = text.substr(at + mark.size());
      return part.substr(0, std::min(part.find("management:"), part.find("storage:")));
    }
  }
  return text;
}

struct RateBand {
  double at_least;  // Gb/s a GPU
  std::string_view fabric;
};

std::optional<std::string> at_rate(double rate, std::initializer_list<RateBand> bands) {
  for (const RateBand& band : bands) {
    if (rate >= band.at_least) return std::string(band.fabric);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> framework_named(std::string_view label) {
  const std::string text = lower(label);
  const auto any = [&](std::initializer_list<std::string_view> parts) {
    return contains_any(text, parts);
  };
  if (any({"megatron"}) && any({"2020"})) return "megatron-2021";
  if (any({"megatron"}) && any({"deepspeed"})) return "megatron-deepspeed";
  if (any({"megatron-bridge", "megatron bridge"})) return "megatron-bridge";
  if (any({"nemo"})) return "nemo";
  if (any({"ngc "}) || (any({"nvidia"}) && any({"release"}))) return "nemo";
  if (any({"megatron"})) return "megatron";
  if (any({"llm-foundry", "composer", "mosaic"})) return "llm-foundry";
  if (any({"torchtitan"})) return "torchtitan";
  if (any({"internevo", "internlm"})) return "internevo";
  if (any({"maxtext", "pax", "jax", "t5x"})) return "jax";
  if (any({"deepspeed"})) return "deepspeed";
  if (any({"hugging", "hf ", "transformers", "trainer"}) || text == "hf") return "hf";
  if (any({"fsdp_qlora", "fsdp-qlora"})) return "fsdp-qlora";
  if (any({"fsdp"})) return "fsdp";
  if (any({"litgpt"})) return "litgpt";
  if (any({"ddp", "llm.c"})) return "ddp";
  return std::nullopt;
}

std::optional<std::string> fabric_named(std::string_view label, std::int64_t gpus_per_node) {
  const std::string text = compute_part(network_text(label));
  const auto any = [&](std::initializer_list<std::string_view> parts) {
    return contains_any(text, parts);
  };
  double rate = 0;
  for (const Rate& found : rates_in(text, std::max<std::int64_t>(1, gpus_per_node))) {
    rate = std::max(rate, found.per_gpu);
  }
  if (any({"omni-path", "omnipath", "omni path"})) return "omnipath-4x100";
  if (any({"efa"})) return any({"p4d"}) || (rate > 0 && rate < 150) ? "efa-p4d" : "efa-v2";
  if (any({"roce", "rdma over converged"}) || (any({"rdma"}) && !any({"infiniband"}))) {
    return at_rate(rate, {{300, "roce-400"}, {150, "roce-200"}, {40, "roce-4x100"}});
  }
  if (any({"infiniband", " ib", "ndr", "hdr", "connectx", "cx-7", "cx7", "connec"}) && rate > 0 &&
      !any({"ethernet"})) {
    return at_rate(rate, {{300, "ndr400-rail"}, {150, "hdr200"}, {40, "infiniband-100"}});
  }
  if (any({"ethernet"}) && any({"infiniband"}) && rate >= 150) {
    return at_rate(rate, {{300, "ndr400-rail"}, {150, "hdr200"}});
  }
  if (any({"ethernet"})) {
    const double node = rate * static_cast<double>(gpus_per_node);
    return at_rate(node, {{60, "ethernet-100"}, {20, "ethernet-25"}, {5, "ethernet-10"}});
  }
  return at_rate(rate, {{300, "ndr400-rail"}, {150, "hdr200"}});
}

std::optional<ZeroLabel> zero_named(std::string_view label) {
  const std::string words = words_of(label);
  std::string_view rest(words);
  ZeroLabel zero{0, std::nullopt};
  if (words.size() > 2 && words[1] >= '0' && words[1] <= '3' && words[2] == ' ') {
    zero.stage = words[1] - '0';
    rest.remove_prefix(2);
  } else if (const auto at = words.find(" zero "); at != std::string::npos) {
    const auto stage = number_at(words, at + 6);
    if (!stage || *stage > 3) return std::nullopt;
    zero.stage = static_cast<int>(*stage);
    return zero;
  } else if (has_word(words, "fsdp")) {
    zero.stage = has_word(words, "resharded") && has_word(words, "not") ? 2 : 3;
  } else if (has_word(words, "ddp") || has_word(words, "none")) {
    return zero;
  } else {
    return std::nullopt;
  }
  const auto digit = rest.find_first_of("0123456789");
  if (zero.stage > 0 && digit != std::string_view::npos && rest[digit - 1] == ' ') {
    zero.shard_ranks = number_at(rest, digit);
  }
  return zero;
}

std::optional<std::string> recompute_named(std::string_view label, std::string_view framework,
                                           std::int64_t layers) {
  const std::string words = words_of(label);
  if (has_word(words, "none") || has_word(words, "off") || has_word(words, "no")) return "none";
  if (contains(words, " every 2nd layer ")) return "full:" + std::to_string((layers + 1) / 2);
  if (has_word(words, "full")) return "full";
  if (!has_word(words, "selective")) return std::nullopt;
  if (has_word(words, "op") || has_word(words, "operators")) return "operators";
  // MaxText's policy keeps every matrix product and the attention output.
  if (contains(words, " minimal flash ")) return "none";
  const bool attention = has_word(words, "attention") || has_word(words, "core");
  return framework == "torchtitan" && !attention ? "operators" : "selective";
}

}  // namespace orrery

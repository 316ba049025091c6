#include "catalog/gpu_label.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace orrery {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// The number of "... 96gb ..." or "... 96 gb ...".
std::int64_t gigabytes(std::string_view words) {
  for (std::size_t at = 1; at < words.size(); ++at) {
    if (words[at - 1] != ' ' || !is_digit(words[at])) continue;
    const std::size_t unit = words.find_first_not_of("0123456789", at);
    if (unit == std::string_view::npos) continue;
    const std::string_view rest = words.substr(unit + (words[unit] == ' ' ? 1 : 0));
    if (rest.starts_with("gb ") || rest.starts_with("gib ") || rest.starts_with("g ")) {
      return std::stoll(std::string(words.substr(at, std::min<std::size_t>(unit - at, 9))));
    }
  }
  return 0;
}

bool has_prefix_word(std::string_view words, std::string_view prefix) {
  return contains(words, " " + std::string(prefix));
}

std::string with_memory(std::string name, std::int64_t gib, std::int64_t usual) {
  return name + "-" + std::to_string(gib ? gib : usual) + "gb";
}

std::string h100_named(std::string_view words, std::int64_t gib) {
  if (has_word(words, "pcie")) return "h100-pcie";
  if (has_word(words, "nvl") || gib == 94) return "h100-nvl";
  return gib == 96 ? "h100-sxm-96gb-500w" : "h100-sxm";
}

std::string v100_named(std::string_view words, std::int64_t gib) {
  if (has_word(words, "pcie")) return with_memory("v100-pcie", gib, 32);
  const bool dgx2 = has_word(words, "sxm3") || contains(words, " dgx 2 ");
  return with_memory(dgx2 ? "v100-sxm3" : "v100-sxm2", gib, 32);
}

}  // namespace

std::string words_of(std::string_view label) {
  std::string words = " ";
  for (const char c : label) {
    const auto letter = static_cast<unsigned char>(c);
    const bool part_of_word = std::isalnum(letter) != 0;
    if (part_of_word) words += static_cast<char>(std::tolower(letter));
    if (!part_of_word && words.back() != ' ') words += ' ';
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

bool has_word(std::string_view words, std::string_view word) {
  return contains(words, " " + std::string(word) + " ");
}

std::string gpu_named(std::string_view label) {
  const std::string words = words_of(label);
  const std::int64_t gib = gigabytes(words);
  const bool pcie = has_word(words, "pcie");
  const auto is = [&](std::string_view name) { return has_prefix_word(words, name); };
  if (is("gh200")) return "gh200";
  if (is("gb200") || is("gb300")) return is("gb200") ? "gb200" : "gb300";
  if (is("b200")) return "b200";
  if (is("h200")) return has_word(words, "nvl") ? "h200-nvl" : "h200-sxm";
  if (is("h100")) return h100_named(words, gib);
  if (is("h800")) return pcie ? "h800-pcie" : "h800-sxm";
  if (has_word(words, "h20")) return "h20";
  if (is("a100")) return with_memory(pcie ? "a100-pcie" : "a100-sxm", gib, 80);
  if (is("a800")) return pcie ? "a800-pcie" : "a800-sxm";
  if (is("v100")) return v100_named(words, gib);
  if (is("l40s")) return "l40s";
  if (has_word(words, "l4")) return "l4";
  if (is("4090")) return "rtx-4090";
  if (is("3090")) return has_word(words, "ti") ? "rtx-3090-ti" : "rtx-3090";
  if (has_word(words, "ada") && (has_word(words, "a6000") || has_word(words, "6000"))) {
    return "rtx-a6000-ada";
  }
  std::string name = words.substr(1, words.size() > 1 ? words.size() - 2 : 0);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

}  // namespace orrery

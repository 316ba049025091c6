#include "tables/kernel_row.h"

#include <array>
#include <utility>

#include "catalog/gpu_label.h"

namespace orrery {

std::string library_named(std::string_view label) {
  const std::string words = words_of(label);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> known = {{
      {" trtllm ", "tensorrt-llm"},
      {" tensorrt ", "tensorrt-llm"},
      {" sglang ", "sglang"},
      {" deepgemm ", "deepgemm"},
      {" sarathi ", "sarathi"},
      {" vllm ", "vllm"},
      {" nccl ", "nccl"},
      {" cublaslt ", "cublaslt"},
  }};
  for (const auto& [word, name] : known) {
    if (words.find(word) != std::string::npos) return std::string(name);
  }
  std::string name;
  for (const char c : words.substr(1)) {
    if (c == ' ') break;
    name += c;
  }
  return name;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  // The low bits of FNV-1a alone are weak.
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}

}  // namespace orrery

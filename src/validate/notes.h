// The keywords of a row's `other` column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

class Notes {
 public:
  explicit Notes(std::string_view other);

  /// Whether words of it start with `part`: "interleav" is said by "interleaved; float8".
  bool say(std::string_view part) const;
  /// The whole number after a phrase: 8 after "local batch" in "local batch 8 per dp rank".
  std::optional<std::int64_t> number(std::string_view phrase) const;
  /// A value of --offload, or nothing where all stays on the GPU.
  std::optional<std::string> offload() const;

 private:
  std::string words_;
};

}  // namespace orrery

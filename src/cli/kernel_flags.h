// The flags of a question of `orrery kernel`, read with their bounds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "catalog/gpu.h"
#include "core/error.h"
#include "twin/asked.h"

namespace orrery::cli {

inline constexpr std::int64_t longest_side = std::int64_t{1} << 31;

inline std::int64_t needed(const Request& request, const std::string& name) {
  const Asked asked(request, name);
  if (!asked) throw InputError("the operator needs --" + name, "", "see orrery kernel --help");
  return asked.whole(1, longest_side);
}

inline std::int64_t usual(const Request& request, const std::string& name, std::int64_t value) {
  const Asked asked(request, name);
  return asked ? asked.whole(1, longest_side) : value;
}

inline bool yes(const Request& request, const std::string& name, bool value) {
  const Asked asked(request, name);
  return asked ? asked.yes() : value;
}

/// One of `allowed`.
inline Precision precision(const Request& request, const std::string& name, Precision value,
                           std::initializer_list<Precision> allowed) {
  const Asked asked(request, name);
  if (!asked) return value;
  Choices<Precision> choices;
  for (const Precision one : allowed) choices.emplace_back(to_text(one), one);
  return asked.choice(choices);
}

}  // namespace orrery::cli

// One key of a request, for reading and for complaining.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "twin/scenario.h"
#include "units/text.h"

namespace orrery {

template <class E>
using Choices = std::vector<std::pair<std::string_view, E>>;

class Asked {
 public:
  Asked(const Request& request, std::string key);

  // Whether it was given; the rest EXPECT that it was. InputErrors name its place.
  explicit operator bool() const { return text_.has_value(); }
  const std::string& text() const;
  std::string place() const { return request_.place_of(key_); }

  // `"two" RULE; MEND`, with the value in front.
  [[noreturn]] void fail(const std::string& rule, const std::string& mend) const;

  std::int64_t whole(std::int64_t low, std::int64_t high) const;
  double number(double low, double high) const;
  double share() const;  // "20%" or 0.2: at least 0, below 1
  // Between commas, none of them empty.
  std::vector<std::string> list() const;
  bool yes() const;
  // A bare number in `unit`, or a quantity with its own unit.
  template <class Q>
  Q quantity(const std::string& unit) const {
    return parse<Q>(with_unit(unit), place());
  }
  template <class E>
  E choice(const Choices<E>& choices) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == text()) return value;
      names.emplace_back(name);
    }
    fail_choice(names);
  }

 private:
  std::string with_unit(const std::string& unit) const;
  [[noreturn]] void fail_choice(const std::vector<std::string>& names) const;

  const Request& request_;
  std::string key_;
  std::optional<std::string> text_;
};

}  // namespace orrery

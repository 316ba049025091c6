#include "twin/asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"

namespace orrery {

Asked::Asked(const Request& request, std::string key) : request_(request), key_(std::move(key)) {
  const auto found = request.values.find(key_);
  if (found != request.values.end()) text_ = found->second;
}

const std::string& Asked::text() const {
  EXPECT(text_.has_value());
  return *text_;
}

void Asked::fail(const std::string& rule, const std::string& mend) const {
  throw InputError(in_quotes(text()) + " " + rule, "", mend, place());
}

std::int64_t Asked::whole(std::int64_t low, std::int64_t high) const {
  std::int64_t value = 0;
  const char* end = text().data() + text().size();
  const auto [stop, error] = std::from_chars(text().data(), end, value);
  if (error == std::errc::result_out_of_range ||
      (stop == end && error == std::errc() && (value < low || value > high))) {
    fail("is out of range", fmt::format("give a whole number from {} to {}", low, high));
  }
  if (stop != end || error != std::errc()) {
    fail("is not a whole number", fmt::format("give one from {} to {}", low, high));
  }
  return value;
}

double Asked::number(double low, double high) const {
  double value = 0;
  const char* end = text().data() + text().size();
  const auto [stop, error] = std::from_chars(text().data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) {
    fail("is not a number", fmt::format("give one from {:g} to {:g}", low, high));
  }
  if (error != std::errc() || !(value >= low && value <= high)) {
    fail("is out of range", fmt::format("give a number from {:g} to {:g}", low, high));
  }
  return value;
}

double Asked::share() const {
  const bool percent = text().ends_with('%');
  double value = 0;
  const char* end = text().data() + text().size() - (percent ? 1 : 0);
  const auto [stop, error] = std::from_chars(text().data(), end, value);
  if (percent) value /= 100;
  if (stop != end || error != std::errc() || !(value >= 0 && value < 1)) {
    fail("is not a share of at least 0 and below 1", "give one such as 20% or 0.2");
  }
  return value;
}

std::vector<std::string> Asked::list() const {
  std::vector<std::string> items;
  std::string_view rest = text();
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    items.emplace_back(rest.substr(0, comma));
    if (items.back().empty()) fail("has an empty item", "write items with one comma between two");
    if (comma == rest.size()) return items;
    rest.remove_prefix(comma + 1);
  }
}

bool Asked::yes() const {
  if (text() == "true" || text() == "yes" || text() == "on") return true;
  if (text() == "false" || text() == "no" || text() == "off") return false;
  fail("is neither true nor false", "give true or false");
}

std::string Asked::with_unit(const std::string& unit) const {
  const bool bare = text().find_first_not_of("0123456789.eE+-") == std::string::npos;
  return bare ? text() + " " + unit : text();
}

void Asked::fail_choice(const std::vector<std::string>& names) const {
  const std::string hint = did_you_mean(text(), names);
  fail("is not one of " + join(names), hint.empty() ? "choose one of them" : hint);
}

}  // namespace orrery

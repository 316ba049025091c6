// A typed reader over a Json object that knows where it is and refuses keys it was not asked for.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace orrery {

/// Where a value was read: a file and a path of keys, "llama.json: experts.count".
struct FieldPlace {
  std::string place;
  std::string path;

  std::string text() const;
  FieldPlace key(std::string_view name) const;
  FieldPlace item(std::size_t index) const;

  [[noreturn]] void fail(const std::string& problem, const std::string& suggestion = "") const;
  /// "expected WHAT, got VALUE".
  [[noreturn]] void fail_expected(const std::string& what, const Json& got) const;
};

/// How a T is read from Json. Other rooms specialise it for their own types.
template <class T>
struct FieldReader;

class Fields {
 public:
  /// InputError if json is not an object. Keeps a reference to it.
  Fields(const Json& json, std::string place, std::string path = "");
  Fields(const Json&& json, std::string place, std::string path = "") = delete;

  template <class T>
  T required(std::string_view key) {
    return FieldReader<T>::read(required_json(key), where_.key(key));
  }

  /// Absent and null are the same.
  template <class T>
  std::optional<T> optional(std::string_view key) {
    const Json* json = optional_json(key);
    if (!json) return std::nullopt;
    return FieldReader<T>::read(*json, where_.key(key));
  }

  template <class T>
  T optional(std::string_view key, T fallback) {
    return optional<T>(key).value_or(std::move(fallback));
  }

  /// A number within [low, high].
  template <class T>
  T required_in(std::string_view key, T low, T high) {
    return check_range(key, required<T>(key), low, high);
  }
  template <class T>
  std::optional<T> optional_in(std::string_view key, T low, T high) {
    const std::optional<T> value = optional<T>(key);
    if (value) check_range(key, *value, low, high);
    return value;
  }

  /// One of a few names: `choice<Activation>("activation", {{"swiglu", Activation::swiglu}, …})`.
  template <class E>
  using Choices = std::initializer_list<std::pair<std::string_view, E>>;
  template <class E>
  E choice(std::string_view key, Choices<E> choices) {
    return choose<E>(required_json(key), key, choices);
  }
  template <class E>
  E choice(std::string_view key, Choices<E> choices, E fallback) {
    const Json* json = optional_json(key);
    return json ? choose<E>(*json, key, choices) : fallback;
  }

  Fields nested(std::string_view key);
  std::optional<Fields> optional_nested(std::string_view key);
  /// An array of objects; absent and null are empty.
  std::vector<Fields> list(std::string_view key);

  const Json& required_json(std::string_view key);
  /// nullptr if absent or null.
  const Json* optional_json(std::string_view key);
  /// Present, even if null. Does not count as reading.
  bool has(std::string_view key) const { return json_->contains(key); }
  /// Accepts a key without reading it.
  void ignore(std::string_view key) { known_.emplace(key); }

  /// InputError, with a near miss, for the first key that nobody asked for.
  void finish() const;

  [[noreturn]] void fail(std::string_view key, const std::string& problem,
                         const std::string& suggestion = "") const {
    where_.key(key).fail(problem, suggestion);
  }
  const FieldPlace& where() const { return where_; }
  const Json& json() const { return *json_; }

 private:
  template <class T>
  T check_range(std::string_view key, T value, T low, T high) const {
    if (value < low || value > high) fail_range(key, Json(value), Json(low), Json(high));
    return value;
  }
  [[noreturn]] void fail_range(std::string_view key, const Json& value, const Json& low,
                               const Json& high) const;
  [[noreturn]] void fail_choice(std::string_view key, const Json& got,
                                const std::vector<std::string>& names) const;

  template <class E>
  E choose(const Json& json, std::string_view key, Choices<E> choices) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (json.is_string() && json.as_string() == name) return value;
      names.emplace_back(name);
    }
    fail_choice(key, json, names);
  }

  const Json* json_;
  FieldPlace where_;
  std::set<std::string, std::less<>> known_;
};

/// An integer within [low, high]; 1e3 counts as one, 1.5 does not.
std::int64_t read_integer(const Json& json, const FieldPlace& where, std::int64_t low,
                          std::int64_t high);

template <>
struct FieldReader<bool> {
  static bool read(const Json& json, const FieldPlace& where);
};
template <>
struct FieldReader<double> {
  static double read(const Json& json, const FieldPlace& where);
};
template <>
struct FieldReader<std::string> {
  static std::string read(const Json& json, const FieldPlace& where);
};
template <>
struct FieldReader<Json> {
  static Json read(const Json& json, const FieldPlace&) { return json; }
};

template <std::integral T>
struct FieldReader<T> {
  static T read(const Json& json, const FieldPlace& where) {
    using Limits = std::numeric_limits<T>;
    constexpr std::int64_t high = std::in_range<std::int64_t>(Limits::max())
                                      ? static_cast<std::int64_t>(Limits::max())
                                      : std::numeric_limits<std::int64_t>::max();
    return static_cast<T>(
        read_integer(json, where, static_cast<std::int64_t>(Limits::min()), high));
  }
};

template <class T>
struct FieldReader<std::vector<T>> {
  static std::vector<T> read(const Json& json, const FieldPlace& where) {
    if (!json.is_array()) where.fail_expected("an array", json);
    std::vector<T> values;
    values.reserve(json.size());
    for (const Json& item : json.items()) {
      values.push_back(FieldReader<T>::read(item, where.item(values.size())));
    }
    return values;
  }
};

}  // namespace orrery

// A JSON value, its text, and the strict reader that turns text into it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace orrery {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  ///< in the order of insertion; keys are unique
  enum class Kind { null, boolean, integer, number, string, array, object };

  Json() = default;  ///< null
  Json(std::nullptr_t) {}
  Json(std::same_as<bool> auto value) : value_(value) {}
  Json(std::integral auto value) requires(!std::same_as<decltype(value), bool>)
      : value_(checked_integer(value)) {}
  Json(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}

  static Json array(std::initializer_list<Json> items = {});
  static Json array(Array items);
  /// EXPECTs distinct keys.
  static Json object(std::initializer_list<Member> members = {});
  static Json object(Object members);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  bool is_number() const { return kind() == Kind::number || is_integer(); }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  // Each EXPECTs the kind that it names.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_double() const;  ///< of an integer too
  const std::string& as_string() const;
  const Array& items() const;
  const Object& members() const;

  /// Items of an array or members of an object; 0 for anything else.
  std::size_t size() const;
  /// The member of an object, or nullptr when there is none (or this is no object).
  const Json* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const Json& operator[](std::string_view key) const;  ///< EXPECTs that it is there
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Json& operator[](std::size_t index) const;  ///< EXPECTs that it is there
  const Json& operator[](int index) const { return (*this)[static_cast<std::size_t>(index)]; }

  /// Adds or replaces a member; null becomes an object first. Returns *this, for chains.
  Json& set(std::string_view key, Json value);
  /// Adds an item; null becomes an array first. Returns *this, for chains.
  Json& push_back(Json value);

  /// The same bytes for the same value; doubles in their shortest exact form. `indent` < 0 writes
  /// one line. EXPECTs finite numbers.
  std::string dump(int indent = -1) const;

  bool operator==(const Json&) const = default;

 private:
  static std::int64_t checked_integer(std::unsigned_integral auto value) {
    return from_unsigned(value);
  }
  static std::int64_t checked_integer(std::signed_integral auto value) { return value; }
  static std::int64_t from_unsigned(std::uint64_t value);

  // In the order of Kind.
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value_;
};

/// "an object", "a string"…, for messages.
std::string_view describe(Json::Kind kind);

/// How deep arrays and objects may nest in a text.
inline constexpr int kMaxJsonDepth = 64;

/// Strict JSON: InputError at "place:line:column" for duplicate keys, depth beyond kMaxJsonDepth,
/// text after the value, numbers beyond double, bytes that are not UTF-8.
Json parse_json(std::string_view text, const std::string& place);

/// parse_json of a file's text.
Json read_json(const std::string& path);

}  // namespace orrery

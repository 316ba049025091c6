#include "core/fields.h"

#include <cmath>

#include "core/text.h"

namespace orrery {
namespace {

std::string shown(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::array:
    case Json::Kind::object:
      return std::string(describe(json.kind()));
    case Json::Kind::string:
      return in_quotes(json.as_string());
    default:
      return json.dump();
  }
}

std::string joined(const std::string& outer, const std::string& inner, const char* between) {
  return outer.empty() ? inner : inner.empty() ? outer : outer + between + inner;
}

}  // namespace

std::string FieldPlace::text() const { return joined(place, path, ": "); }

FieldPlace FieldPlace::key(std::string_view name) const {
  return {place, joined(path, std::string(name), ".")};
}

FieldPlace FieldPlace::item(std::size_t index) const {
  return {place, path + "[" + std::to_string(index) + "]"};
}

void FieldPlace::fail(const std::string& problem, const std::string& suggestion) const {
  throw InputError(problem, "", suggestion, text());
}

void FieldPlace::fail_expected(const std::string& what, const Json& got) const {
  fail("expected " + what + ", got " + shown(got));
}

Fields::Fields(const Json& json, std::string place, std::string path)
    : json_(&json), where_{std::move(place), std::move(path)} {
  if (!json.is_object()) where_.fail_expected("an object", json);
}

const Json& Fields::required_json(std::string_view key) {
  known_.emplace(key);
  const Json* json = json_->find(key);
  if (json) return *json;
  // The key may be there, misspelt.
  std::vector<std::string> unread;
  for (const auto& [name, value] : json_->members()) {
    if (!known_.contains(name)) unread.push_back(name);
  }
  const auto near = nearest(key, unread);
  where_.fail("the key " + in_quotes(key) + " is missing",
              near ? "is " + in_quotes(*near) + " meant to be it?" : "");
}

const Json* Fields::optional_json(std::string_view key) {
  known_.emplace(key);
  const Json* json = json_->find(key);
  return json && !json->is_null() ? json : nullptr;
}

Fields Fields::nested(std::string_view key) {
  return Fields(required_json(key), where_.place, where_.key(key).path);
}

std::optional<Fields> Fields::optional_nested(std::string_view key) {
  const Json* json = optional_json(key);
  if (!json) return std::nullopt;
  return Fields(*json, where_.place, where_.key(key).path);
}

std::vector<Fields> Fields::list(std::string_view key) {
  std::vector<Fields> fields;
  const Json* json = optional_json(key);
  if (!json) return fields;
  const FieldPlace where = where_.key(key);
  if (!json->is_array()) where.fail_expected("an array", *json);
  for (const Json& item : json->items()) {
    fields.emplace_back(item, where.place, where.item(fields.size()).path);
  }
  return fields;
}

void Fields::finish() const {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [name, value] : json_->members()) {
    if (known_.contains(name)) continue;
    std::string suggestion = did_you_mean(name, known);
    if (suggestion.empty() && !known.empty()) suggestion = "known keys: " + join(known);
    where_.fail("unknown key " + in_quotes(name), suggestion);
  }
}

void Fields::fail_range(std::string_view key, const Json& value, const Json& low,
                        const Json& high) const {
  fail(key, "must be between " + low.dump() + " and " + high.dump() + ", got " + value.dump());
}

void Fields::fail_choice(std::string_view key, const Json& got,
                         const std::vector<std::string>& names) const {
  fail(key, "expected one of " + join(names) + ", got " + shown(got),
       got.is_string() ? did_you_mean(got.as_string(), names) : "");
}

std::int64_t read_integer(const Json& json, const FieldPlace& where, std::int64_t low,
                          std::int64_t high) {
  const std::string what = low == 0 ? "a non-negative integer" : "an integer";
  if (!json.is_number()) where.fail_expected(what, json);
  std::int64_t value = 0;
  if (json.is_integer()) {
    value = json.as_integer();
  } else {
    const double number = json.as_double();
    if (number != std::floor(number)) where.fail_expected(what, json);
    // Beyond 2^53 a double no longer says which integer was meant.
    if (std::abs(number) > 9007199254740992.0) where.fail_expected(what + " below 2^53", json);
    value = static_cast<std::int64_t>(number);
  }
  if (value < low && low == 0) where.fail_expected(what, json);
  if (value < low || value > high) {
    where.fail_expected(
        "an integer between " + std::to_string(low) + " and " + std::to_string(high), json);
  }
  return value;
}

bool FieldReader<bool>::read(const Json& json, const FieldPlace& where) {
  if (!json.is_bool()) where.fail_expected("true or false", json);
  return json.as_bool();
}

double FieldReader<double>::read(const Json& json, const FieldPlace& where) {
  if (!json.is_number()) where.fail_expected("a number", json);
  return json.as_double();
}

std::string FieldReader<std::string>::read(const Json& json, const FieldPlace& where) {
  if (!json.is_string()) where.fail_expected("a string", json);
  return json.as_string();
}

}  // namespace orrery

#include "core/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace orrery {
namespace {

bool has_distinct_keys(const Json::Object& members) {
  std::set<std::string_view> keys;
  for (const auto& [key, value] : members) {
    if (!keys.insert(key).second) return false;
  }
  return true;
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_length(text);
    for (const char c : text.substr(0, valid)) {
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\r':
          out += "\\r";
          break;
        default:
          if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            out += escape;
          } else {
            out += c;
          }
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";  // U+FFFD: what is written is always valid, whatever a file was called
    text.remove_prefix(1);
  }
  out += '"';
}

void write_double(std::string& out, double value) {
  EXPECT(std::isfinite(value));
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  out += text;
  // A double stays a double when it is read again.
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& json) {
    switch (json.kind()) {
      case Json::Kind::null:
        out_ += "null";
        break;
      case Json::Kind::boolean:
        out_ += json.as_bool() ? "true" : "false";
        break;
      case Json::Kind::integer:
        out_ += std::to_string(json.as_integer());
        break;
      case Json::Kind::number:
        write_double(out_, json.as_double());
        break;
      case Json::Kind::string:
        write_string(out_, json.as_string());
        break;
      case Json::Kind::array:
        write_list('[', ']', json.items(), [this](const Json& item) { write(item); });
        break;
      case Json::Kind::object:
        write_list('{', '}', json.members(), [this](const Json::Member& member) {
          write_string(out_, member.first);
          out_ += indent_ < 0 ? ":" : ": ";
          write(member.second);
        });
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  template <class List, class WriteItem>
  void write_list(char open, char close, const List& list, WriteItem write_item) {
    out_ += open;
    ++depth_;
    bool first = true;
    for (const auto& item : list) {
      if (!first) out_ += ',';
      first = false;
      new_line();
      write_item(item);
    }
    --depth_;
    if (!first) new_line();
    out_ += close;
  }

  void new_line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth_), ' ');
  }

  std::string out_;
  int indent_;
  int depth_ = 0;
};

}  // namespace

Json Json::array(std::initializer_list<Json> items) { return array(Array(items)); }

Json Json::array(Array items) {
  Json json;
  json.value_ = std::move(items);
  return json;
}

Json Json::object(std::initializer_list<Member> members) { return object(Object(members)); }

Json Json::object(Object members) {
  EXPECT(has_distinct_keys(members));
  Json json;
  json.value_ = std::move(members);
  return json;
}

bool Json::as_bool() const {
  EXPECT(is_bool());
  return std::get<bool>(value_);
}

std::int64_t Json::as_integer() const {
  EXPECT(is_integer());
  return std::get<std::int64_t>(value_);
}

double Json::as_double() const {
  EXPECT(is_number());
  return is_integer() ? static_cast<double>(std::get<std::int64_t>(value_))
                      : std::get<double>(value_);
}

const std::string& Json::as_string() const {
  EXPECT(is_string());
  return std::get<std::string>(value_);
}

const Json::Array& Json::items() const {
  EXPECT(is_array());
  return std::get<Array>(value_);
}

const Json::Object& Json::members() const {
  EXPECT(is_object());
  return std::get<Object>(value_);
}

std::size_t Json::size() const {
  if (is_array()) return items().size();
  return is_object() ? members().size() : 0;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* found = find(key);
  EXPECT(found != nullptr);
  return *found;
}

const Json& Json::operator[](std::size_t index) const {
  EXPECT(index < items().size());
  return items()[index];
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  EXPECT(is_object());
  auto& members = std::get<Object>(value_);
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.first == key; });
  if (found == members.end()) {
    members.emplace_back(std::string(key), std::move(value));
  } else {
    found->second = std::move(value);
  }
  return *this;
}

Json& Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  EXPECT(is_array());
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  Writer writer(indent);
  writer.write(*this);
  return writer.take();
}

std::int64_t Json::from_unsigned(std::uint64_t value) {
  EXPECT(value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  return static_cast<std::int64_t>(value);
}

std::string_view describe(Json::Kind kind) {
  constexpr std::array<std::string_view, 7> names = {
      "null", "true or false", "an integer", "a number", "a string", "an array", "an object"};
  return names[static_cast<std::size_t>(kind)];
}

Json read_json(const std::string& path) { return parse_json(read_text(path), path); }

}  // namespace orrery

// The only file that includes yaml-cpp. Events, not its nodes: they can be refused one by one.
#include "core/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/json_builder.h"
#include "core/text.h"

namespace orrery {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto digits = [&] {
    const std::size_t start = at;
    while (is_digit(peek())) ++at;
    return at - start;
  };
  if (peek() == '-') ++at;
  const bool leading_zero = peek() == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (peek() == '.' && (++at, digits() == 0)) return false;
  if (peek() == 'e' || peek() == 'E') {
    ++at;
    if (peek() == '+' || peek() == '-') ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

Json number(std::string_view text) {
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, integer);
      error == std::errc() && rest == end) {
    return integer;
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  // Too small for a double is zero, as in JSON; too large is refused.
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(text).c_str(), nullptr);
  if (!std::isfinite(value)) throw InputError("the number " + in_quotes(text) + " is too large");
  return value;
}

Json plain_scalar(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (is_json_number(text)) return number(text);
  return text;
}

std::string position(const YAML::Mark& mark) {
  return std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

class Handler : public YAML::EventHandler {
 public:
  explicit Handler(const std::string& place) : place_(place) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    at(mark, [&] { add(scalar("?", anchor, "", true)); });
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    at(mark, [&] { add(scalar(tag, anchor, value, false)); });
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    at(mark, [] { refuse_anchor(); });
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    at(mark, [&] { begin(tag, anchor, false); });
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    at(mark, [&] { begin(tag, anchor, true); });
  }
  void OnMapEnd() override { end(); }

  Json take() { return builder_.take(); }

 private:
  enum class Next { value, key };

  template <class Action>
  void at(const YAML::Mark& mark, Action action) {
    try {
      action();
    } catch (const InputError& error) {
      throw error.within(place_ + ":" + position(mark));
    }
  }

  [[noreturn]] static void refuse_anchor() {
    throw InputError("YAML anchors and aliases (&name, *name) are not accepted", "",
                     "write the value out, or put text in quotes");
  }

  static void check_plain(const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) refuse_anchor();
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw InputError("YAML tags (!name) are not accepted", "", "put text in quotes");
    }
  }

  Json scalar(const std::string& tag, YAML::anchor_t anchor, const std::string& text,
              bool is_null) const {
    check_plain(tag, anchor);
    if (is_null) return nullptr;
    // yaml-cpp writes the escapes \N and \_ as single bytes.
    if (valid_utf8_length(text) < text.size()) {
      throw InputError("the escapes \\N and \\_ are not accepted", "",
                       "write the character itself");
    }
    const bool is_plain = tag == "?";
    return is_plain && next() == Next::value ? plain_scalar(text) : Json(text);
  }

  Next next() const { return next_.empty() ? Next::value : next_.back(); }

  // In a map, keys and values take turns.
  void flip() {
    if (!next_.empty() && in_map_.back()) {
      next_.back() = next_.back() == Next::key ? Next::value : Next::key;
    }
  }

  void add(Json json) {
    if (next() == Next::key) {
      if (!json.is_string()) throw InputError("a key is missing", "", "write key: value");
      builder_.key(json.as_string());
    } else {
      builder_.value(std::move(json));
    }
    flip();
  }

  void begin(const std::string& tag, YAML::anchor_t anchor, bool is_map) {
    check_plain(tag, anchor);
    if (next() == Next::key) throw InputError("a key must be plain text");
    builder_.begin(is_map);
    in_map_.push_back(is_map);
    next_.push_back(is_map ? Next::key : Next::value);
  }

  void end() {
    builder_.end();
    in_map_.pop_back();
    next_.pop_back();
    flip();
  }

  const std::string& place_;
  JsonBuilder builder_;
  std::vector<bool> in_map_;
  std::vector<Next> next_;
};

}  // namespace

Json parse_yaml(std::string_view text, const std::string& place) {
  const auto at = [&](std::size_t offset) { return place + ":" + line_and_column(text, offset); };
  if (const std::size_t valid = valid_utf8_length(text); valid < text.size()) {
    throw InputError("not valid UTF-8", "", "", at(valid));
  }
  // yaml-cpp takes a zero byte or \x04 for the end of the text.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') {
      throw InputError("not valid YAML", "control character", "", at(i));
    }
  }
  std::istringstream stream{std::string(text)};
  Handler handler(place);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(handler)) throw InputError("empty", "", "", place);
    Handler second(place);
    if (parser.HandleNextDocument(second)) {
      throw InputError("more than one YAML document", "", "keep one, without a further ---", place);
    }
  } catch (const YAML::Exception& error) {
    throw InputError("not valid YAML", error.msg, "", place + ":" + position(error.mark));
  }
  return handler.take();
}

Json read_json_or_yaml(const std::string& path) {
  const bool yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  const std::string text = read_text(path, kScenarioReadLimit);
  return yaml ? parse_yaml(text, path) : parse_json(text, path);
}

}  // namespace orrery

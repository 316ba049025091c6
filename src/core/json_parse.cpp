// The only file that includes nlohmann, which takes seconds to compile.
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/json_builder.h"
#include "core/text.h"

namespace orrery {
namespace {

// Walks the text and leaves a mark, since nlohmann's events do not say where they are.
struct MarkedCursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** mark;

  reference operator*() const { return *at; }
  MarkedCursor& operator++() {
    *mark = ++at;
    return *this;
  }
  MarkedCursor operator++(int) {
    MarkedCursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const MarkedCursor& other) const { return at == other.at; }
  bool operator!=(const MarkedCursor& other) const { return at != other.at; }
};

// "[json.exception…] parse error at line 1, column 2: syntax error while parsing value - REASON",
// or "[json.exception…] REASON".
std::string reason_of(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  for (const std::string_view head : {"] ", " - "}) {
    if (const std::size_t at = text.find(head); at != std::string_view::npos) {
      text.remove_prefix(at + head.size());
    }
  }
  return std::string(text);
}

class SaxHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    // Beyond int64 an integer is only a large number.
    return std::in_range<std::int64_t>(value) ? add(value) : add(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return builder_.begin(true), true; }
  bool key(string_t& name) override { return builder_.key(std::move(name)), true; }
  bool end_object() override { return builder_.end(), true; }
  bool start_array(std::size_t) override { return builder_.begin(false), true; }
  bool end_array() override { return builder_.end(), true; }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    throw InputError("not valid JSON", reason_of(error));
  }

  Json take() { return builder_.take(); }

 private:
  bool add(Json value) { return builder_.value(std::move(value)), true; }

  JsonBuilder builder_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& place) {
  const auto at = [&](std::size_t offset) { return place + ":" + line_and_column(text, offset); };
  if (const std::size_t valid = valid_utf8_length(text); valid < text.size()) {
    throw InputError("not valid UTF-8", "", "", at(valid));
  }
  // nlohmann takes a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw InputError("not valid JSON", "zero byte", "", at(zero));
  }
  const char* mark = text.data();
  SaxHandler handler;
  try {
    nlohmann::json::sax_parse(MarkedCursor{text.data(), &mark},
                              MarkedCursor{text.data() + text.size(), &mark}, &handler);
  } catch (const InputError& error) {
    // The mark stands behind the character that was read last.
    const auto read = static_cast<std::size_t>(mark - text.data());
    throw error.within(at(read > 0 ? read - 1 : 0));
  }
  return handler.take();
}

}  // namespace orrery

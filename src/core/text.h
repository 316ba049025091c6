// Words for people: near misses, lists, quotes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The candidate that someone who typed `name` most likely meant, if any is near.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// `did you mean "h100-sxm"?`, or nothing: a suggestion for an InputError.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// The text in quotes, safe to print: control characters escaped, cut when very long.
std::string in_quotes(std::string_view text);

/// How many leading bytes are whole, valid UTF-8.
std::size_t valid_utf8_length(std::string_view text);

/// "line:column" of a byte offset, both counted from 1.
std::string line_and_column(std::string_view text, std::size_t offset);

}  // namespace orrery

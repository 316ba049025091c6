// Whole files, read with a limit and written all or not at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery {

inline constexpr std::size_t kDefaultReadLimit = std::size_t{16} << 20;

/// The bytes of a file or pipe. InputError if it is missing, a folder, unreadable or larger than
/// `limit` bytes.
std::string read_text(const std::string& path, std::size_t limit = kDefaultReadLimit);

/// Replaces the file in one step, or throws IoError and leaves what was there. A device or pipe
/// (/dev/stdout) is written in place.
void write_text_atomically(const std::string& path, std::string_view text);

}  // namespace orrery

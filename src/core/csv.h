// Comma-separated text as RFC 4180 writes it, read strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

struct CsvRow {
  std::int64_t line;               ///< where it starts, counted from 1
  std::vector<std::string> cells;  ///< as many as the header has
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  std::optional<std::size_t> column(std::string_view name) const;
};

inline constexpr std::size_t kMaxCsvBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxCsvRows = 100'000;
inline constexpr std::size_t kMaxCsvColumns = 1000;

/// The first row names the columns. Cells may be quoted and then hold commas, line breaks and
/// doubled quotes; rows end with LF or CRLF, the last one need not; empty lines are skipped. A byte
/// order mark is dropped. InputError at "place:line" for an unterminated or misplaced quote, a row
/// of another length, a column without a name or named twice, bytes that are no text, a table
/// beyond the limits above.
CsvTable parse_csv(std::string_view text, const std::string& place);

}  // namespace orrery

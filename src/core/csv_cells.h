// The cells of one row, by the names of their columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/csv.h"

namespace orrery {

class CsvCells {
 public:
  /// Keeps references.
  CsvCells(const CsvTable& table, const CsvRow& row, const std::string& place)
      : table_(table), row_(row), place_(place) {}

  /// Without spaces around it; empty where there is no such column.
  std::string_view text(std::string_view column) const;
  bool has(std::string_view column) const { return !text(column).empty(); }
  /// Above zero and at most 1e15, or a whole number within limits; InputError at "place:line".
  double amount(std::string_view column) const;
  std::int64_t integer(std::string_view column, std::int64_t low, std::int64_t high) const;
  std::int64_t line() const { return row_.line; }

  [[noreturn]] void fail(std::string_view column, const std::string& problem) const;

 private:
  double number(std::string_view column) const;

  const CsvTable& table_;
  const CsvRow& row_;
  const std::string& place_;
};

}  // namespace orrery

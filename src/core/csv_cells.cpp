#include "core/csv_cells.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace orrery {

std::string_view CsvCells::text(std::string_view column) const {
  const auto position = table_.column(column);
  if (!position) return {};
  const std::string_view cell = row_.cells[*position];
  const auto first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return cell.substr(first, cell.find_last_not_of(" \t") - first + 1);
}

void CsvCells::fail(std::string_view column, const std::string& problem) const {
  throw InputError("column " + std::string(column) + ": " + problem + ", got " +
                       in_quotes(std::string(text(column))),
                   "", "", place_ + ":" + std::to_string(row_.line));
}

double CsvCells::number(std::string_view column) const {
  const std::string_view cell = text(column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) {
    fail(column, "expected a number");
  }
  return value;
}

double CsvCells::amount(std::string_view column) const {
  const double value = number(column);
  if (value <= 0 || value > 1e15) fail(column, "expected a number above 0 and at most 1e15");
  return value;
}

std::int64_t CsvCells::integer(std::string_view column, std::int64_t low, std::int64_t high) const {
  const double value = number(column);
  if (value != std::floor(value) || value < static_cast<double>(low) ||
      value > static_cast<double>(high)) {
    fail(column,
         "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace orrery

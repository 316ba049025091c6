#include "tables/kernel_tables.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace orrery {
namespace {

bool has_columns(const CsvTable& table, std::initializer_list<std::string_view> names) {
  return std::ranges::all_of(names, [&](auto name) { return table.column(name).has_value(); });
}

}  // namespace

std::optional<KernelTable> kernel_table_from_csv(const CsvTable& table, const std::string& place) {
  if (!has_columns(table, {"gpu", "time_us", "library", "source"})) return std::nullopt;
  if (has_columns(table, {"m", "n", "k", "dtype"})) return gemm_table(table, place);
  return std::nullopt;
}

}  // namespace orrery

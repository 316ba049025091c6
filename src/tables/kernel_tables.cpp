#include "tables/kernel_tables.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

namespace orrery {
namespace {

bool has_columns(const CsvTable& table, std::initializer_list<std::string_view> names) {
  return std::ranges::all_of(names, [&](auto name) { return table.column(name).has_value(); });
}

// Columns that say who measured and what came out; the others are the shape.
bool is_shape(std::string_view column) {
  constexpr std::array others = {"gpu",        "time_us",        "library",       "source",
                                 "tflops",     "tflops_nominal", "bytes_nominal", "gbps_nominal",
                                 "busbw_gbps", "kv_read_gbps"};
  return std::ranges::find(others, column) == others.end();
}

void label(const CsvTable& table, std::vector<KernelRow>& rows) {
  std::map<std::int64_t, const CsvRow*> lines;
  for (const CsvRow& line : table.rows) lines[line.line] = &line;
  for (KernelRow& row : rows) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const std::string& cell = lines.at(row.line)->cells[i];
      if (cell.empty() || !is_shape(table.columns[i])) continue;
      row.label += (row.label.empty() ? "" : " ") + table.columns[i] + "=" + cell;
    }
  }
}

std::optional<KernelTable> read_by_columns(const CsvTable& table, const std::string& place) {
  if (has_columns(table, {"phase", "heads", "head_dim", "kv_len"})) {
    return attention_table(table, place);
  }
  if (has_columns(table, {"m", "n", "k", "dtype"})) return gemm_table(table, place);
  if (has_columns(table, {"kernel", "rows", "cols", "dtype"})) return memory_table(table, place);
  if (has_columns(table, {"op", "gpus", "bytes", "fabric"})) return collective_table(table, place);
  if (has_columns(table, {"phase", "heads_local", "kv_len"})) return mla_table(table, place);
  return std::nullopt;
}

}  // namespace

std::optional<KernelTable> kernel_table_from_csv(const CsvTable& table, const std::string& place) {
  if (!has_columns(table, {"gpu", "time_us", "library", "source"})) return std::nullopt;
  std::optional<KernelTable> kernels = read_by_columns(table, place);
  if (kernels) label(table, kernels->rows);
  return kernels;
}

}  // namespace orrery

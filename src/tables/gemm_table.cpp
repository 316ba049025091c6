#include "catalog/gpu_label.h"
#include "core/csv_cells.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 31;

}  // namespace

KernelTable gemm_table(const CsvTable& table, const std::string& place) {
  KernelTable all;
  all.kind = "gemm";
  for (const CsvRow& line : table.rows) {
    const CsvCells cells(table, line, place);
    const auto format = gemm_format_named(cells.text("dtype"));
    if (!format) {
      all.skipped.push_back({line.line, "no model of " + std::string(cells.text("dtype"))});
      continue;
    }
    GemmShape shape;
    shape.m = cells.integer("m", 1, longest);
    shape.n = cells.integer("n", 1, longest);
    shape.k = cells.integer("k", 1, longest);
    shape.batch = cells.has("batch") ? cells.integer("batch", 1, longest) : 1;
    shape.format = *format;
    shape.replayed = true;
    shape.policy = policy_of(library_named(cells.text("library")), *format);
    KernelRow row;
    row.line = line.line;
    row.gpu = gpu_named(cells.text("gpu"));
    row.library = library_named(cells.text("library"));
    row.source = cells.text("source");
    row.op = "gemm";
    row.variant = to_text(*format);
    row.measured = Seconds(cells.amount("time_us") * 1e-6);
    row.family = hash_of(std::to_string(shape.n) + "x" + std::to_string(shape.k));
    row.shape = shape;
    all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace orrery

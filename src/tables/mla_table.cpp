#include <algorithm>
#include <array>

#include "catalog/gpu_label.h"
#include "core/csv_cells.h"
#include "core/text.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 31;

// A fit sees every other count of heads, so that it is asked about counts between those it knows,
// as a user with another degree of tensor parallelism asks.
constexpr std::array<std::int64_t, 3> shown = {1, 8, 128};

std::uint64_t family_of(std::int64_t heads) {
  const bool seen = std::ranges::find(shown, heads) != shown.end();
  return 2 * static_cast<std::uint64_t>(heads) + (seen ? 0 : 1);
}

Bytes element_of(std::string_view dtype) { return element_size(precision_of(dtype)); }

MlaPrefillShape prefill_of(const CsvCells& cells) {
  MlaPrefillShape shape;
  shape.batch = cells.integer("batch", 1, longest);
  shape.heads = cells.integer("heads_local", 1, longest);
  shape.queries = cells.integer("q_len", 1, longest);
  shape.keys = cells.integer("kv_len", shape.queries, longest);
  shape.element = element_of(cells.text("kv_dtype"));
  return shape;
}

MlaDecodeShape decode_of(const CsvCells& cells) {
  MlaDecodeShape shape;
  shape.batch = cells.integer("batch", 1, longest);
  shape.heads = cells.integer("heads_local", 1, longest);
  shape.queries = cells.integer("q_len", 1, longest);
  shape.keys = cells.integer("kv_len", 1, longest);
  shape.element = element_of(cells.text("kv_dtype"));
  return shape;
}

}  // namespace

KernelTable mla_table(const CsvTable& table, const std::string& place) {
  KernelTable all;
  all.kind = "mla";
  for (const CsvRow& line : table.rows) {
    const CsvCells cells(table, line, place);
    const std::string_view phase = cells.text("phase");
    const std::string dtype(cells.text("dtype")), cache(cells.text("kv_dtype"));
    if (dtype != "bf16" || (cache != "bf16" && cache != "fp8")) {
      all.skipped.push_back({line.line, "no model of " + dtype + " on " + cache});
      continue;
    }
    if (phase != "prefill" && phase != "decode") {
      cells.fail("phase", "expected prefill or decode, got " + in_quotes(phase));
    }
    KernelRow row;
    row.line = line.line;
    row.gpu = gpu_named(cells.text("gpu"));
    row.library = library_named(cells.text("library"));
    row.source = cells.text("source");
    row.op = "mla-" + std::string(phase);
    row.variant = cache == dtype ? dtype : dtype + "_kv_" + cache;
    row.measured = Seconds(cells.amount("time_us") * 1e-6);
    if (phase == "decode") {
      const MlaDecodeShape shape = decode_of(cells);
      row.family = family_of(shape.heads);
      row.shape = shape;
    } else {
      MlaPrefillShape shape = prefill_of(cells);
      // SGLang's FlashAttention-3 back end runs prefill on the latents: its plateau is 580 TFLOP/s
      // if 1088 values a pair are counted and 170 if 320 are.
      shape.absorbed = row.library == "sglang";
      row.family = family_of(shape.heads);
      // vLLM sends up to 64 tokens of a sequence through its kernel of decode where the cache is
      // fp8, token by token.
      row.fitted = !(row.library == "vllm" && shape.element == Bytes(1) && shape.queries <= 64);
      row.shape = shape;
    }
    all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace orrery

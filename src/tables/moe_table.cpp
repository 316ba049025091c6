#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "catalog/gpu_label.h"
#include "core/csv_cells.h"
#include "core/text.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 31;
constexpr std::int64_t most_experts = 1 << 16;
constexpr std::int64_t most_routed = 1 << 24;  // tokens of a row whose routing is drawn

std::optional<MoeFormat> format_named(std::string_view text) {
  for (const MoeFormat format : {MoeFormat::bf16, MoeFormat::fp8, MoeFormat::fp8_block,
                                 MoeFormat::w4a16_mxfp4, MoeFormat::int4_wo}) {
    if (to_text(format) == text) return format;
  }
  return std::nullopt;
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// "balanced", or "power_law_1.01".
double skew_of(const CsvCells& cells) {
  const std::string_view text = cells.text("distribution");
  constexpr std::string_view law = "power_law_";
  if (text == "balanced") return 0;
  const std::string number(text.substr(std::min(law.size(), text.size())));
  char* end = nullptr;
  const double skew = std::strtod(number.c_str(), &end);
  if (!text.starts_with(law) || number.empty() || *end != 0 || !(skew > 0 && skew < 10)) {
    cells.fail("distribution", "expected balanced or power_law_1.2, got " + in_quotes(text));
  }
  return skew;
}

// Nemotron 3's experts have one matrix up. TensorRT-LLM's rows say so; those of vLLM 0.24 take two
// thirds of the time of gated ones of their size; older ones and SGLang's were timed as gated.
bool is_gated(const MoeShape& shape, std::string_view library) {
  if (contains(library, "nongated")) return false;
  const bool nemotron =
      shape.topk == 22 || (shape.hidden == 2688 && shape.inter == 1856 && shape.topk == 6);
  return !(nemotron && contains(library, "vllm 0.24"));
}

// A library has several kernels for one format, each with parameters of its own.
std::string variant_of(MoeFormat format, std::string_view library) {
  std::string variant(to_text(format));
  if (contains(library, "flashinfer")) variant += "_flashinfer";
  if (contains(library, "marlin")) variant += "_marlin";
  return variant;
}

MoeShape shape_of(const CsvCells& cells, MoeFormat format, std::string_view library) {
  MoeShape shape;
  shape.tokens = cells.integer("tokens", 1, most_routed);
  shape.hidden = cells.integer("hidden", 1, longest);
  shape.inter = cells.integer("inter", 1, longest);
  shape.experts = cells.integer("experts", 1, most_experts);
  shape.topk = cells.integer("topk", 1, shape.experts);
  shape.tp = cells.integer("moe_tp", 1, shape.inter);
  shape.ep = cells.integer("moe_ep", 1, shape.experts);
  if (shape.experts % shape.ep != 0) cells.fail("moe_ep", "experts do not divide by it");
  shape.format = format;
  shape.gated = is_gated(shape, library);
  if (contains(library, "triton") || contains(library, "vllm_fused_moe")) {
    shape.tiles = MoeTiles::triton;
  }
  return shape;
}

}  // namespace

KernelTable moe_table(const CsvTable& table, const std::string& place) {
  KernelTable all;
  all.kind = "moe";
  // Drawing the loads takes longer than all else, and many rows have the same.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, double>, ExpertLoads>
      drawn;
  for (const CsvRow& line : table.rows) {
    const CsvCells cells(table, line, place);
    const auto format = format_named(cells.text("dtype"));
    if (!format) {
      all.skipped.push_back({line.line, "no model of " + std::string(cells.text("dtype"))});
      continue;
    }
    const std::string_view library = cells.text("library");
    MoeShape shape = shape_of(cells, *format, library);
    const double skew = skew_of(cells);
    ExpertLoads& loads = drawn[{shape.tokens, shape.topk, shape.experts, shape.ep, skew}];
    if (loads.empty()) loads = with_loads(shape, skew).loads;
    shape.loads = loads;

    KernelRow row;
    row.line = line.line;
    row.gpu = gpu_named(cells.text("gpu"));
    row.library = library_named(library);
    row.source = cells.text("source");
    row.op = "moe";
    row.variant = variant_of(*format, library);
    row.measured = Seconds(cells.amount("time_us") * 1e-6);
    std::string family;
    for (const std::int64_t size : {shape.hidden, shape.inter, shape.topk, shape.experts}) {
      family += std::to_string(size) + "x";
    }
    row.family = hash_of(family);
    row.shape = std::move(shape);
    all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace orrery

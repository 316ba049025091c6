#include <optional>
#include <string>

#include "catalog/gpu_label.h"
#include "core/csv_cells.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 31;

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// An engine's kernels of another origin are a library of their own.
std::string library_of(std::string_view label) {
  if (mentions(label, "FlashAttention-3")) return "flash-attention-3";
  if (mentions(label, "FlashAttention-2")) return "flash-attention-2";
  std::string name = library_named(label);
  if (mentions(label, "fa4")) name += "-fa4";
  if (mentions(label, "triton")) name += "-triton";
  return name;
}

// What no model of a fused kernel speaks of; empty for others.
std::string unmodelled(const CsvCells& cells) {
  const std::string_view library = cells.text("library");
  if (cells.text("phase") == "mixed") {
    return "prefill and decoding in one launch; priced as two kernels";
  }
  if (mentions(library, "FlashMLA")) return "latent attention has a table of its own";
  if (mentions(library, "PyTorch standard")) return "attention that is not fused";
  if (!cells.has("heads") || !cells.has("q_len") || !cells.has("head_dim")) {
    return "heads or lengths are not stated";
  }
  if (!cells.has("time_us")) return "a rate without a time";
  if (!cells.has("causal")) return "whether it is causal is not stated";
  return "";
}

Precision dtype_of(std::string_view text) {
  return text == "fp8" ? Precision::fp8 : text == "fp16" ? Precision::fp16 : Precision::bf16;
}

GpuArchitecture architecture_of(std::string_view gpu) {
  if (gpu.starts_with("a100")) return GpuArchitecture::ampere;
  if (gpu.starts_with("l4") || gpu.starts_with("rtx-4090")) return GpuArchitecture::ada;
  return GpuArchitecture::hopper;
}

AttentionShape shape_of(const CsvCells& cells, const KernelRow& row) {
  AttentionShape shape;
  shape.batch = cells.integer("batch", 1, longest);
  shape.heads = cells.integer("heads", 1, longest);
  shape.kv_heads = cells.has("kv_heads") ? cells.integer("kv_heads", 1, longest) : shape.heads;
  shape.head_dim = cells.integer("head_dim", 1, longest);
  shape.q_len = cells.integer("q_len", 1, longest);
  shape.kv_len = cells.has("kv_len") ? cells.integer("kv_len", 1, longest) : shape.q_len;
  shape.window = cells.has("window") ? cells.integer("window", 1, longest) : 0;
  shape.causal = cells.text("causal") != "0";
  shape.query = dtype_of(cells.text("dtype"));
  shape.cache = dtype_of(cells.has("kv_dtype") ? cells.text("kv_dtype") : cells.text("dtype"));
  shape.backward = cells.text("direction") == "bwd";
  shape.writes_cache = cells.has("kv_dtype");
  shape.replayed = true;
  shape.kernels = attention_kernels(row.library, architecture_of(row.gpu));
  return shape;
}

// TensorRT-LLM 1.0 on A100, heads that share keys: up to 3430 GB/s where the memory has 2039, so
// its bench reads pages that sequences have in common. What the L2 holds may be as fast.
bool outruns_memory(const KernelRow& row, const AttentionShape& shape) {
  constexpr Bytes l2(40e6);
  return row.op == "attention-decode" && row.library == "tensorrt-llm" &&
         row.gpu.starts_with("a100") && shape.heads > shape.kv_heads && attention_bytes(shape) > l2;
}

// Rows of one model's heads; those of LLMServingSim, all of one model, by their tokens.
std::string family_of(const AttentionShape& shape, std::string_view source) {
  std::string family = std::to_string(shape.heads) + "x" + std::to_string(shape.kv_heads) + "x" +
                       std::to_string(shape.head_dim);
  if (mentions(source, "LLMServingSim")) {
    family += " " + std::to_string(shape.batch) + " " + std::to_string(shape.q_len);
  }
  return family;
}

}  // namespace

KernelTable attention_table(const CsvTable& table, const std::string& place) {
  KernelTable all;
  all.kind = "attention";
  for (const CsvRow& line : table.rows) {
    const CsvCells cells(table, line, place);
    if (std::string reason = unmodelled(cells); !reason.empty()) {
      all.skipped.push_back({line.line, std::move(reason)});
      continue;
    }
    KernelRow row;
    row.line = line.line;
    row.gpu = gpu_named(cells.text("gpu"));
    row.library = library_of(cells.text("library"));
    row.source = cells.text("source");
    const AttentionShape shape = shape_of(cells, row);
    if (shape.kv_len < shape.q_len || shape.heads % shape.kv_heads != 0) {
      cells.fail("kv_len", "expected keys for every query, and heads that share them evenly");
    }
    row.op = cells.text("phase") == "decode" ? "attention-decode" : attention_op(shape);
    if (row.op == "attention-decode" && cells.text("phase") == "prefill") {
      row.op = "attention-prefill";  // the prefill kernel on a sequence of one token
    }
    row.variant = attention_variant(shape);
    row.measured = Seconds(cells.amount("time_us") * 1e-6);
    row.family = hash_of(family_of(shape, row.source));
    row.fitted = attention_warning(shape, row.library).empty() && !outruns_memory(row, shape);
    row.shape = shape;
    all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace orrery

#include "validate/measurement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace orrery {
namespace {

// What a cell is and where, for whoever must complain about it.
struct Cell {
  const std::string& text;
  const std::string& column;
  std::string place;

  [[noreturn]] void fail(const std::string& problem) const {
    throw InputError("column " + column + ": " + problem + ", got " + in_quotes(text), "", "",
                     place);
  }
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

double number(const Cell& cell) {
  const std::string_view text = trimmed(cell.text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    cell.fail("expected a number");
  }
  return value;
}

// Rates, times and sizes that are printed at all are above zero.
double amount(const Cell& cell) {
  const double value = number(cell);
  if (value <= 0 || value > 1e15) cell.fail("expected a number above 0 and at most 1e15");
  return value;
}

std::int64_t integer(const Cell& cell, std::int64_t low, std::int64_t high) {
  const double value = number(cell);
  if (value != std::floor(value) || value < static_cast<double>(low) ||
      value > static_cast<double>(high)) {
    cell.fail("expected a whole number from " + std::to_string(low) + " to " +
              std::to_string(high));
  }
  return static_cast<std::int64_t>(value);
}

Outcome outcome(const Cell& cell) {
  const std::string_view text = trimmed(cell.text);
  if (text == "ok") return Outcome::ok;
  if (text == "oom") return Outcome::oom;
  if (text.starts_with("does not fit")) return Outcome::does_not_fit;
  cell.fail("expected ok, oom or does not fit");
}

using Set = std::function<void(Measurement&, const Cell&)>;

Set words(std::string Measurement::*field) {
  return [field](Measurement& row, const Cell& cell) { row.*field = trimmed(cell.text); };
}
Set positive(std::optional<double> Measurement::*field) {
  return [field](Measurement& row, const Cell& cell) { row.*field = amount(cell); };
}
// The limits keep every product of dimensions within 64 bits.
Set count(std::optional<std::int64_t> Measurement::*field, std::int64_t high,
          std::int64_t low = 1) {
  return [=](Measurement& row, const Cell& cell) { row.*field = integer(cell, low, high); };
}

struct Column {
  std::string name;
  Set set;
  bool required = false;
};

const std::vector<Column>& columns() {
  using M = Measurement;
  constexpr std::int64_t many = 1'000'000'000;
  static const std::vector<Column> all = {
      {"id", words(&M::id), true},
      {"source", words(&M::source)},
      {"gpu", words(&M::gpu), true},
      {"gpus", count(&M::gpus, 10'000'000), true},
      {"gpus_per_node", count(&M::gpus_per_node, 1'000'000)},
      {"interconnect", words(&M::interconnect)},
      {"framework", words(&M::framework)},
      {"task", words(&M::task)},
      {"model", words(&M::model), true},
      {"params_b", positive(&M::params_b)},
      {"layers", count(&M::layers, 10'000)},
      {"hidden", count(&M::hidden, 1'000'000)},
      {"heads", count(&M::heads, 10'000)},
      {"kv_heads", count(&M::kv_heads, 10'000)},
      {"head_dim", count(&M::head_dim, 10'000)},
      {"ffn_hidden", count(&M::ffn_hidden, 10'000'000)},
      {"mlp", words(&M::mlp)},
      {"vocab", count(&M::vocab, 100'000'000)},
      {"experts", count(&M::experts, 1'000'000, 0)},
      {"topk", count(&M::topk, 1'000'000, 0)},
      {"moe_ffn_hidden", count(&M::moe_ffn_hidden, 10'000'000, 0)},
      {"seq_len", count(&M::seq_len, many), true},
      {"global_batch_seqs", count(&M::global_batch_seqs, many), true},
      {"micro_batch", count(&M::micro_batch, many)},
      {"precision", words(&M::precision), true},
      {"tp", count(&M::tp, 10'000'000)},
      {"sp", [](Measurement& row, const Cell& cell) { row.sp = integer(cell, 0, 1) == 1; }},
      {"pp", count(&M::pp, 10'000'000)},
      {"vpp", count(&M::vpp, 10'000)},
      {"dp", count(&M::dp, 10'000'000)},
      {"cp", count(&M::cp, 10'000'000)},
      {"ep", count(&M::ep, 10'000'000)},
      {"zero_stage", words(&M::zero_stage)},
      {"recompute", words(&M::recompute)},
      {"other", words(&M::other)},
      {"step_time_s", positive(&M::step_time_s)},
      {"tokens_per_s_per_gpu", positive(&M::tokens_per_s_per_gpu)},
      {"model_tflops_per_gpu", positive(&M::model_tflops_per_gpu)},
      {"hw_tflops_per_gpu", positive(&M::hw_tflops_per_gpu)},
      {"mfu_pct", positive(&M::mfu_pct)},
      {"hfu_pct", positive(&M::hfu_pct)},
      {"mfu_peak_tflops", positive(&M::mfu_peak_tflops)},
      {"flops_convention", words(&M::flops_convention)},
      {"peak_mem_gib", positive(&M::peak_mem_gib)},
      {"outcome", [](Measurement& row, const Cell& cell) { row.outcome = outcome(cell); }},
      {"derived", words(&M::derived)},
  };
  return all;
}

const Column& column_named(const std::string& name, const std::string& place) {
  std::vector<std::string> names;
  for (const Column& column : columns()) {
    if (column.name == name) return column;
    names.push_back(column.name);
  }
  throw InputError("unknown column " + in_quotes(name), "", did_you_mean(name, names), place);
}

std::vector<const Column*> columns_of(const CsvTable& table, const std::string& place) {
  std::vector<const Column*> found;
  for (const std::string& name : table.columns) found.push_back(&column_named(name, place));
  std::vector<std::string> missing;
  for (const Column& column : columns()) {
    if (column.required && !table.column(column.name)) missing.push_back(column.name);
  }
  if (!missing.empty()) {
    throw InputError((missing.size() == 1 ? "missing column " : "missing columns ") + join(missing),
                     "", "leave cells empty where the source is silent", place);
  }
  return found;
}

}  // namespace

std::string source_of(std::string_view id) {
  const auto dash = id.find_last_of('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == id.size()) return std::string(id);
  const std::string_view number = id.substr(dash + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letters = std::find_if_not(number.begin(), number.end(), is_digit);
  const bool numbered = letters != number.begin() && number.end() - letters <= 1;
  return std::string(numbered ? id.substr(0, dash) : id);
}

std::vector<Measurement> measurements_from_csv(std::string_view text, const std::string& place) {
  const CsvTable table = parse_csv(text, place);
  const std::vector<const Column*> layout = columns_of(table, place);
  std::vector<Measurement> rows;
  std::set<std::string> ids;
  for (const CsvRow& row : table.rows) {
    const std::string here = place + ":" + std::to_string(row.line);
    Measurement measurement;
    measurement.line = row.line;
    for (std::size_t i = 0; i < layout.size(); ++i) {
      if (trimmed(row.cells[i]).empty()) continue;
      layout[i]->set(measurement, {row.cells[i], layout[i]->name, here});
    }
    if (measurement.id.empty()) throw InputError("this row has no id", "", "", here);
    if (!ids.insert(measurement.id).second) {
      throw InputError("id " + in_quotes(measurement.id) + " appears twice", "", "", here);
    }
    rows.push_back(std::move(measurement));
  }
  return rows;
}

std::vector<Measurement> load_measurements(const std::string& path) {
  return measurements_from_csv(read_text(path, kMaxCsvBytes), path);
}

}  // namespace orrery

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "catalog/gpu_label.h"
#include "core/csv_cells.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 31;

// The table's words for kernels that the model calls otherwise. PyTorch's "addu" adds a scalar.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> other_names = {{
    {"rope(q,k)", "rope"},
    {"rmsnorm_fused_residual", "rmsnorm_residual"},
    {"quantize_bf16_to_fp8", "quantise_fp8"},
    {"absmax_scale_bf16", "absmax"},
    {"addu", "elementwise"},
    {"subu", "elementwise"},
    {"mulu", "elementwise"},
    {"divu", "elementwise"},
    {"powu", "elementwise"},
    {"babelstream_copy", "stream_copy"},
    {"babelstream_mul", "stream_mul"},
    {"babelstream_add", "stream_add"},
    {"babelstream_triad", "stream_triad"},
    {"babelstream_dot", "stream_dot"},
    {"copy_float4", "copy"},
}};

std::string_view our_name(std::string_view kernel) {
  for (const auto& [theirs, ours] : other_names) {
    if (theirs == kernel) return ours;
  }
  return kernel;
}

// BabelStream's default arrays: 2^25 elements of fp64, in CTAs of 1024 threads.
constexpr std::int64_t stream_ctas = std::int64_t{1} << 15, stream_threads = 1024;

Bytes element_of(std::string_view dtype) {
  return element_size(dtype.empty() ? Precision::fp64 : precision_of(dtype));
}

// A kernel that nobody knows moves the bytes that the table says, as an elementwise one does.
TrafficShape shape_of_unknown(const CsvCells& cells, std::int64_t rows, std::int64_t cols) {
  TrafficShape shape = traffic_shape(*traffic_kernel_named("elementwise"), rows, cols, Bytes(1));
  const double elements = static_cast<double>(rows) * static_cast<double>(cols);
  shape.read = shape.written = Bytes(0.5 * cells.amount("bytes_nominal") / elements);
  return shape;
}

// A stream-type row has a rate and no time. All are of one family: they are too few to divide.
KernelRow stream_row(const CsvCells& cells, const TrafficKernel& kernel) {
  KernelRow row;
  TrafficShape shape =
      traffic_shape(kernel, stream_ctas, stream_threads, element_of(cells.text("dtype")));
  shape.replayed = true;
  row.measured = shape.bytes() / BytesPerSecond(cells.amount("gbps_nominal") * 1e9);
  row.shape = shape;
  return row;
}

KernelRow timed_row(const CsvCells& cells, const TrafficKernel* kernel) {
  KernelRow row;
  const std::int64_t rows = cells.integer("rows", 1, longest);
  const std::int64_t cols = cells.integer("cols", 1, longest);
  TrafficShape shape = kernel ? traffic_shape(*kernel, rows, cols, element_of(cells.text("dtype")))
                              : shape_of_unknown(cells, rows, cols);
  shape.replayed = true;
  row.measured = Seconds(cells.amount("time_us") * 1e-6);
  row.shape = shape;
  return row;
}

// A family is a width, which stands for a model; where all rows of a group have one or two widths,
// a quarter of an octave of rows at one width.
void set_families(std::vector<KernelRow>& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::int64_t>> widths;
  const auto group = [](const KernelRow& row) {
    return std::tuple(row.gpu, row.library, row.variant);
  };
  for (const KernelRow& row : rows) {
    widths[group(row)].insert(std::get<TrafficShape>(row.shape).cols);
  }
  for (KernelRow& row : rows) {
    if (row.variant == "stream") continue;
    const auto& shape = std::get<TrafficShape>(row.shape);
    std::string family = row.variant + " " + std::to_string(shape.cols);
    if (widths.at(group(row)).size() <= 2) {
      const double quarters = 4 * std::log2(static_cast<double>(shape.rows));
      family += " " + std::to_string(static_cast<int>(quarters));
    }
    row.family = hash_of(family);
  }
}

}  // namespace

KernelTable memory_table(const CsvTable& table, const std::string& place) {
  KernelTable all;
  all.kind = "memory";
  for (const CsvRow& line : table.rows) {
    const CsvCells cells(table, line, place);
    const TrafficKernel* kernel = traffic_kernel_named(our_name(cells.text("kernel")));
    const bool stream = kernel && kernel->variant == "stream";
    if (!stream && !(cells.has("time_us") && (kernel || cells.has("bytes_nominal")))) {
      all.skipped.push_back({line.line, "a rate without a time or known arrays"});
      continue;
    }
    KernelRow row = stream ? stream_row(cells, *kernel) : timed_row(cells, kernel);
    row.line = line.line;
    row.gpu = gpu_named(cells.text("gpu"));
    row.library = library_named(cells.text("library"));
    row.source = cells.text("source");
    row.op = "memory";
    row.variant = kernel ? kernel->variant : "elementwise";
    all.rows.push_back(std::move(row));
  }
  set_families(all.rows);
  return all;
}

}  // namespace orrery

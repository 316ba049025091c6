#include <algorithm>
#include <bit>
#include <optional>

#include "catalog/gpu_label.h"
#include "core/csv_cells.h"
#include "tables/expert_exchange_rows.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;

std::optional<NcclOp> op_named(std::string_view text) {
  for (const NcclOp op : {NcclOp::all_reduce, NcclOp::all_gather, NcclOp::reduce_scatter,
                          NcclOp::all_to_all, NcclOp::broadcast, NcclOp::send_recv}) {
    if (to_text(op) == text) return op;
  }
  return std::nullopt;
}

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// --- what joins the GPUs of a row ---------------------------------------------------------------

struct NamedRate {
  std::string_view word;
  double gigabytes;
};

// Of a GPU's links, per direction.
constexpr NamedRate nvlinks[] = {{"NVLink5", 900}, {"NVLink4", 450}, {"NVLink3", 300}};
// A bridge between two cards: 600 GB/s in both directions on A100 and H100 (datasheets).
constexpr double bridge = 300;
constexpr double pcie_4 = 31.5, pcie_5 = 63;

// Of a GPU's share of its node's NICs; a BM.GPU4.8 of OCI has 16 ports of 100 Gb/s for 8 GPUs, a
// P6-B200 of AWS 8 of 400. One way through the idle fabric: what small all-reduces of two nodes
// leave of their time; InfiniBand as OCI's, EFA as in data/fabrics.
struct NamedFabric {
  std::string_view word;
  double gigabytes;
  Seconds latency;
};
constexpr NamedFabric fabrics[] = {
    {"RoCE 8x400", 50, Seconds(9e-6)},       {"TCPXO 8x200", 25, Seconds(50e-6)},
    {"OCI RoCE", 25, Seconds(3e-6)},         {"8 NICs per node", 50, Seconds(9e-6)},
    {"InfiniBand 8x400", 50, Seconds(3e-6)}, {"NDR 400Gb/s", 50, Seconds(3e-6)}};
constexpr double nic_efficiency = 0.969;  // of long writes (data/fabrics)

template <std::size_t N>
std::optional<double> rate_in(const NamedRate (&rates)[N], std::string_view text) {
  for (const NamedRate& rate : rates) {
    if (mentions(text, rate.word)) return rate.gigabytes;
  }
  return std::nullopt;
}

GpuArchitecture architecture_of(std::string_view gpu) {
  if (gpu.starts_with("b200") || gpu.starts_with("gb")) return GpuArchitecture::blackwell;
  if (gpu.starts_with("h")) return GpuArchitecture::hopper;
  if (gpu.starts_with("l4")) return GpuArchitecture::ada;
  return GpuArchitecture::ampere;
}

void join_in_node(std::string_view fabric, Interconnect& on, std::int64_t local) {
  const bool hopper = on.architecture >= GpuArchitecture::hopper;
  const bool bridged = mentions(fabric, "pairwise");
  if (mentions(fabric, "PCIe") && !(bridged && local == 2)) {
    on.link = GpuLink::pcie;
    on.intra = BytesPerSecond((hopper ? pcie_5 : pcie_4) * 1e9);
    return;
  }
  const double usual = on.architecture == GpuArchitecture::blackwell ? 900 : hopper ? 450 : 300;
  on.intra = BytesPerSecond((bridged ? bridge : rate_in(nvlinks, fabric).value_or(usual)) * 1e9);
  on.switch_reduces = hopper && !bridged && !mentions(fabric, "NVLS disabled");
}

// --- rows ---------------------------------------------------------------------------------------

Precision dtype_of(std::string_view text) {
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::int8}) {
    if (to_text(precision) == text) return precision;
  }
  return Precision::fp32;  // what nccl-tests takes
}

// NCCL by the age of its timings: releases differ by a tenth below 1 MB.
std::string library_of(const CsvCells& cells) {
  const std::string_view label = cells.text("library");
  if (mentions(label, "profiler")) return "torch";
  if (mentions(label, "2.23)")) return "nccl-2.23";
  if (mentions(label, "2.18")) return "nccl-2.18";
  return "nccl";
}

// What a fit may see. Two, four and eight L40S of one table reach 64, 10 and 2 % of their PCIe: its
// host's doing. Two nodes are each of another fabric; the clocks of other sources add the host to
// small messages, but know large ones.
bool is_clean(const KernelRow& row, const CollectiveShape& shape) {
  constexpr Bytes large(64 << 20);
  if (shape.nodes > 1 || row.library == "nccl-2.18") return false;
  if (row.gpu == "l40s") return shape.ranks == 2;
  return row.source.starts_with("aic@") || row.source.starts_with("vidur@") || shape.size >= large;
}

std::string band_of(Bytes size) {
  constexpr double mib = 1 << 20;
  if (size.value() < mib) return "below 1 MiB";
  if (size.value() <= 8 * mib) return "1 - 8 MiB";
  return size.value() <= 32 * mib ? "8 - 32 MiB" : "above 32 MiB";
}

// Every second size of a curve is shown to a fit, where sizes are powers of two: of neighbouring
// curves the others, for a protocol may have no more than one or two of them. Else half of all.
std::uint64_t family_of(const CollectiveShape& shape) {
  const auto bytes = static_cast<std::uint64_t>(shape.size.value());
  if (!std::has_single_bit(bytes)) return hash_of(std::to_string(bytes));
  return static_cast<std::uint64_t>(std::countr_zero(bytes)) +
         std::bit_width(static_cast<std::uint64_t>(shape.ranks)) +
         static_cast<std::uint64_t>(shape.op);
}

// --- all-reduces of engines ---------------------------------------------------------------------

std::optional<Engine> engine_of(const CsvCells& cells) {
  const std::string_view label = cells.text("library");
  if (!mentions(label, "all-reduce (")) return std::nullopt;
  const std::string library = library_named(label);
  return library == "vllm"     ? Engine::vllm
         : library == "sglang" ? Engine::sglang
                               : Engine::tensorrt_llm;
}

// Above its own buffers an engine calls NCCL, which has no set of that library's name.
void read_engine(const CsvCells& cells, Engine engine, CollectiveShape& shape, KernelRow& row) {
  const bool eager = mentions(cells.text("library"), "_eager");
  row.library = library_named(cells.text("library"));
  const CustomAllReduceShape custom = {.engine = engine,
                                       .architecture = shape.on.architecture,
                                       .ranks = shape.ranks,
                                       .size = shape.size,
                                       .link = shape.on.intra,
                                       .copied = eager};
  if (all_reduce_way(custom) == AllReduceWay::nccl) {
    shape.copied = eager;
    row.shape = shape;
    row.fitted = false;
    return;
  }
  row.op = "all-reduce-custom";
  row.variant = eager ? "eager" : "graph";
  row.shape = custom;
}

// Empty where it is read; else why it is not.
std::string read(const CsvCells& cells, KernelRow& row) {
  const auto op = op_named(cells.text("op"));
  if (!op) return "no model of " + std::string(cells.text("op"));
  if (!cells.has("time_us") || !cells.has("bytes")) return "no time or size";
  if (!cells.has("gpus")) return "the count of GPUs is not stated";
  CollectiveShape shape;
  shape.op = *op;
  shape.ranks = cells.integer("gpus", 2, most_ranks);
  shape.nodes = cells.has("nodes") ? cells.integer("nodes", 1, most_ranks) : 1;
  shape.local = std::max<std::int64_t>(1, shape.ranks / shape.nodes);
  shape.size = Bytes(cells.amount("bytes"));
  shape.dtype = dtype_of(cells.text("dtype"));
  shape.on.architecture = architecture_of(row.gpu);
  join_in_node(cells.text("fabric"), shape.on, shape.local);
  if (shape.nodes > 1) {
    const std::string_view fabric = cells.text("fabric");
    const auto* found = std::ranges::find_if(
        fabrics, [&](const NamedFabric& one) { return mentions(fabric, one.word); });
    if (found == std::end(fabrics)) return "the fabric's rate is not stated";
    shape.on.inter = BytesPerSecond(found->gigabytes * 1e9 * nic_efficiency);
    shape.on.fabric_latency = found->latency;
  }
  row.op = "collective";
  row.variant = to_text(shape.on.link);
  row.library = library_of(cells);
  row.regime = band_of(shape.size);
  row.family = family_of(shape);
  row.fitted = is_clean(row, shape);
  row.shape = shape;
  if (const auto engine = engine_of(cells)) read_engine(cells, *engine, shape, row);
  return "";
}

}  // namespace

KernelTable collective_table(const CsvTable& table, const std::string& place) {
  KernelTable all;
  all.kind = "collectives";
  for (const CsvRow& line : table.rows) {
    const CsvCells cells(table, line, place);
    KernelRow row;
    row.line = line.line;
    row.gpu = gpu_named(cells.text("gpu"));
    row.source = cells.text("source");
    const std::string reason =
        cells.text("op").starts_with("ep_") ? read_expert_exchange(cells, row) : read(cells, row);
    if (!reason.empty()) {
      all.skipped.push_back({line.line, reason});
      continue;
    }
    row.measured = Seconds(cells.amount("time_us") * 1e-6);
    all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace orrery

#include "physics/nccl_plan.h"

#include <algorithm>
#include <limits>

namespace orrery {
namespace {

// NVIDIA/nccl@5067397, src/graph/tuning.cc: base latencies of the ring; of a step over NVLink and
// over PCIe; of NVLS, which has no base.
constexpr double base_latency[] = {6.6e-6, 14e-6, 8.4e-6};
constexpr double nvlink_step[] = {0.6e-6, 1.9e-6, 3.4e-6};
constexpr double pcie_step[] = {1.0e-6, 2.5e-6, 5.7e-6};
constexpr double in_switch_latency = 25e-6;

// What its search finds of a GPU's links: 20 to 20.6 of 25 GB/s, 40.1 of 50 (src/graph/topo.h); 12
// of the 15.75 GB/s of PCIe 3.
constexpr double found_of_nvlink = 0.8, found_of_pcie = 0.76;
// Of that: half of an LL line is flags, 8 of 128 bytes of an LL128 line are.
constexpr double ll_share = 0.5, ll128_share = 0.92;

// LL on one node, at most.
double ll_limit(GpuArchitecture architecture) {
  switch (architecture) {
    case GpuArchitecture::volta:
      return 39e9;
    case GpuArchitecture::ampere:
    case GpuArchitecture::ada:
      return 87.7e9;
    case GpuArchitecture::hopper:
      return 141e9;
    case GpuArchitecture::blackwell:
      return 282e9;
  }
  return 141e9;
}

// Of 16 channels one is lost; the switch halves what a GPU sends for an all-reduce.
double in_switch_share(GpuArchitecture architecture) {
  const double efficiency = architecture == GpuArchitecture::blackwell ? 0.74 : 0.85;
  return efficiency * 15 / 16 * 2;
}

}  // namespace

std::string_view to_text(NcclOp op) {
  constexpr std::string_view names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "all_to_all", "broadcast",  "send_recv"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view to_text(Protocol protocol) {
  constexpr std::string_view names[] = {"LL", "LL128", "Simple", "NVLS"};
  return names[static_cast<std::size_t>(protocol)];
}

double ring_steps(NcclOp op, double ranks) {
  return (op == NcclOp::all_reduce ? 2 : 1) * (ranks - 1);
}

NcclPlan::NcclPlan(const PlannedGroup& group) {
  const bool nvlink = group.link == GpuLink::nvlink;
  const double steps = ring_steps(group.op, group.ranks);
  const double found = group.rate.value() * (nvlink ? found_of_nvlink : found_of_pcie);
  const double to_algorithm = group.ranks / steps;  // from bus to algorithm bandwidth
  const double bus[] = {std::min(ll_share * found, ll_limit(group.architecture)),
                        ll128_share * found, found};
  for (std::size_t p = 0; p < 3; ++p) {
    lines_[p] = {base_latency[p] + steps * (nvlink ? nvlink_step : pcie_step)[p],
                 1 / (bus[p] * to_algorithm), p != 1 || nvlink};
  }
  lines_[3] = {in_switch_latency, 1 / (found * in_switch_share(group.architecture) * to_algorithm),
               group.in_switch && group.op == NcclOp::all_reduce};
}

Protocol NcclPlan::at(double bytes) const {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < protocol_count; ++p) {
    const double time = lines_[p].latency + lines_[p].seconds_per_byte * bytes;
    if (!lines_[p].exists || time >= least) continue;
    least = time;
    best = p;
  }
  return static_cast<Protocol>(best);
}

double NcclPlan::end(Protocol protocol) const {
  const Line& line = lines_[static_cast<std::size_t>(protocol)];
  if (!line.exists) return 0;
  double begin = 0, end = std::numeric_limits<double>::infinity();
  for (const Line& other : lines_) {
    if (!other.exists || &other == &line) continue;
    const double slope = line.seconds_per_byte - other.seconds_per_byte;
    const double gap = other.latency - line.latency;
    if (slope > 0) end = std::min(end, gap / slope);
    if (slope < 0) begin = std::max(begin, gap / slope);
  }
  return end > begin ? end : 0;
}

}  // namespace orrery

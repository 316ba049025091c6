// Which protocol and algorithm NCCL takes: by its own estimates, not by what is fastest.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "catalog/gpu.h"
#include "catalog/node.h"
#include "units/quantity.h"

namespace orrery {

enum class NcclOp { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv };
std::string_view to_text(NcclOp op);

/// Three protocols of the ring, and NVLS: the switch reduces, by the Simple protocol.
enum class Protocol { ll, ll128, simple, in_switch };
constexpr std::size_t protocol_count = 4;
std::string_view to_text(Protocol protocol);

/// A group on one node as NCCL's tuning sees it.
struct PlannedGroup {
  NcclOp op = NcclOp::all_reduce;
  double ranks = 2;
  GpuArchitecture architecture = GpuArchitecture::hopper;
  GpuLink link = GpuLink::nvlink;
  BytesPerSecond rate;     ///< of one GPU's links, per direction, as printed
  bool in_switch = false;  ///< the switch can reduce this
};

/// Steps around the ring.
double ring_steps(NcclOp op, double ranks);

/// NCCL expects `latency + size / rate` of each protocol and takes the least. A protocol's line
/// ends where a later one's begins.
class NcclPlan {
 public:
  explicit NcclPlan(const PlannedGroup& group);
  Protocol at(double bytes) const;
  /// Up to which size a protocol is taken: 0 for one that never is, infinite for the last.
  double end(Protocol protocol) const;

 private:
  struct Line {
    double latency = 0, seconds_per_byte = 0;
    bool exists = false;
  };
  std::array<Line, protocol_count> lines_;
};

}  // namespace orrery

// How long NCCL's collectives take: on one node by the protocol that NCCL picks, between nodes by
// the slower of links and NICs.
#pragma once

#include <cstdint>
#include <span>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/nccl_plan.h"
#include "physics/parameters.h"

namespace orrery {

/// What joins the GPUs of a group. Rates are of one GPU, per direction.
struct Interconnect {
  GpuArchitecture architecture = GpuArchitecture::hopper;
  GpuLink link = GpuLink::nvlink;
  BytesPerSecond intra;         ///< its links, as printed
  bool switch_reduces = false;  ///< NVLS
  BytesPerSecond inter;         ///< what its NIC reaches, thinned by what the group crosses
  Seconds fabric_latency;       ///< of the wire and the switches alone
};

/// `size` as nccl-tests count it (the whole vector). Groups of the same kind may run beside it,
/// each on its own GPUs and NICs.
struct CollectiveShape {
  NcclOp op = NcclOp::all_reduce;
  std::int64_t ranks = 2;
  std::int64_t local = 2;  ///< of them on one node
  std::int64_t nodes = 1;
  Bytes size;
  Precision dtype = Precision::bf16;
  /// Of an all-to-all of tokens: copies of each, of which those for one node travel there as one.
  std::int64_t copies = 1;
  bool copied = false;  ///< into another buffer first
  Interconnect on;
};

/// Of one library on one kind of GPU, for all ops and counts of ranks. Shares are of the links'
/// printed rate. With s steps around n ranks (2(n - 1) for an all-reduce, else n - 1), chunks of
/// c = size / n, s c bytes on each link, and full(c) = (c / ll_full_at)^2 / (1 + (c /
/// ll_full_at)^2):
///   LL      ll_start + s hop + full (ll_full_start + s ll_full_hop) + (s + 1) (c - ll_free) / rate
///   LL128   ll128_start + s ll128_hop + s c / rate + own part
///   Simple  simple_start + s simple_hop + s c / rate + ramp s c / (s c + ramp_at) + own part
///   NVLS    switch_start + size / rate + switch_ramp size / (size + switch_ramp_at)
/// An all-to-all sends its n - 1 messages together.
struct CollectiveParameters {
  Seconds ll_start, ll_hop;
  double reduce_hop = 1;               ///< an all-reduce's step over a gather's, LL
  Seconds ll_full_start, ll_full_hop;  ///< more threads and channels, above a chunk of ll_full_at
  Bytes ll_full_at;
  Bytes ll_free;  ///< of a chunk, moved within a step's latency
  double ll_rate = 0.44;
  Seconds ll128_start, ll128_hop;
  double ll128_rate = 0.6;
  Seconds simple_start, simple_hop;
  Seconds scatter_start;  ///< simple_start of a reduce_scatter
  double simple_rate = 0.8;
  Seconds ramp;  ///< lost in all on the way to the full rate
  Bytes ramp_at;
  double ll_narrow = 0, narrow = 0;  ///< what adding one-byte elements costs more
  BytesPerSecond reduce_copy, gather_copy, scatter_copy;  ///< a rank's own part of the result
  Seconds switch_start;
  double switch_rate = 0.58;
  Seconds switch_ramp;
  Bytes switch_ramp_at;
  Seconds exchange_start, exchange_hop;
  BytesPerSecond exchange_ll;  ///< of one small message
  Seconds exchange_full_start;
  Bytes exchange_free;  ///< of all messages, moved within the start
  double exchange_rate = 0.9;
  double crowd = 0;              ///< what each peer beyond the first costs of that rate
  BytesPerSecond exchange_copy;  ///< own part of an all-to-all

  static std::span<const Parameter<CollectiveParameters>> parameters();
};

struct CollectiveTime : KernelTime {
  Protocol protocol = Protocol::simple;
  bool tree = false;          ///< between nodes
  bool extrapolated = false;  ///< more than two nodes: no measured curve to lean on
};

/// One rank takes no time, nor does nothing to send. Grows with the size throughout.
CollectiveTime collective_time(const CollectiveShape& shape, const CollectiveParameters& parameters,
                               const Device& device);
/// The time alone.
Seconds collective_seconds(const CollectiveShape& shape, const CollectiveParameters& parameters);

}  // namespace orrery

#include "cost/collective.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;

// --- constants ----------------------------------------------------------------------------------
//
// Form and between-node latencies: NVIDIA/nccl@5067397, src/graph/tuning.cc. Within a node its
// constants (a hop of 0.6 us for LL, 1.9 for LL128, 3.4 for Simple) are replaced by fits to
// ai-dynamo/aiconfigurator@095f58a's nccl-tests tables (nccl 2.23 to 2.29, 512 B to 512 MiB, H100
// and A100 SXM, 2, 4 and 8 GPUs) and to the 1 to 16 GiB rows of NVIDIA/dgxc-benchmarking@841f546.

struct Protocol {
  Seconds base, hop;           // within a node; a hop is one step of the ring
  double share;                // bus bandwidth over the link's line rate
  Seconds net_ring, net_tree;  // a step between nodes, without the fabric's latency
  double net_share;            // of the NIC's rate: flags take the rest
};

struct Transport {
  Protocol ll, ll128, simple;
  double exchange;   // all-to-all's share of the bus bandwidth
  double in_switch;  // NVLS: algorithm bandwidth over the link's line rate; 0: has none
  Seconds in_switch_base;
  double message;  // share of the line rate that one long message reaches
  Seconds message_latency;
};

// H100 x8: ring 351 GB/s bus (int8 all-reduce at 512 MiB: 352); NVLS 262 GB/s algorithm (fp16: 254
// at 512 MiB, 266 at 1 GiB, 274 at 16 GiB). Messages: vidur@7d47513's send_recv, 9 us and 0.80.
constexpr Transport hopper = {{5.0_us, 0.75_us, 0.10, 2.7_us, 5.0_us, 0.5},
                              {6.0_us, 0.90_us, 0.48, 4.0_us, 8.5_us, 0.92},
                              {35.0_us, 0.0_us, 0.78, 14.0_us, 14.0_us, 1.0},
                              0.935,
                              0.582,
                              47.0_us,
                              0.80,
                              9.0_us};
// B200 x8 at 16 GiB: NVLS 838, ring 682 GB/s bus (network.md's rows of
// stas00/ml-engineering@744d01e). Only those two are its own: no row without a floor of 48 us was
// found below 1 MB.
constexpr Transport blackwell = {{5.0_us, 0.75_us, 0.10, 2.7_us, 5.0_us, 0.5},
                                 {6.0_us, 0.90_us, 0.48, 4.0_us, 8.5_us, 0.92},
                                 {35.0_us, 0.0_us, 0.758, 14.0_us, 14.0_us, 1.0},
                                 0.935,
                                 0.537,
                                 47.0_us,
                                 0.80,
                                 9.0_us};
// A100 x8: 222 GB/s bus at 512 MiB, 235 at 16 GiB. Messages: vidur's send_recv, 14 us and 0.80.
constexpr Transport ampere = {{8.1_us, 0.975_us, 0.10, 2.7_us, 5.0_us, 0.5},
                              {11.0_us, 1.2_us, 0.47, 4.0_us, 8.5_us, 0.92},
                              {90.0_us, 0.0_us, 0.765, 14.0_us, 14.0_us, 1.0},
                              0.935,
                              0.0,
                              0.0_us,
                              0.80,
                              14.0_us};
// V100: no row found. Ampere's latencies; NCCL plans with 20 of 25 GB/s a link.
constexpr Transport volta = {{8.1_us, 0.975_us, 0.10, 2.7_us, 5.0_us, 0.5},
                             {11.0_us, 1.2_us, 0.47, 4.0_us, 8.5_us, 0.92},
                             {90.0_us, 0.0_us, 0.80, 14.0_us, 14.0_us, 1.0},
                             0.935,
                             0.0,
                             0.0_us,
                             0.80,
                             14.0_us};
// PCIe: two L40S reach 20.1 of 31.5 GB/s (aiconfigurator's table). NCCL itself plans with 12 of
// 15.75 for generation 3, three quarters; one long message is given that. Four and eight L40S of
// that table reach a quarter and a fourteenth, whose cause it does not say: not modelled.
constexpr Transport pcie = {{4.0_us, 1.3_us, 0.33, 2.7_us, 5.0_us, 0.5},
                            {20.0_us, 0.0_us, 0.64, 4.0_us, 8.5_us, 0.92},
                            {20.0_us, 0.0_us, 0.64, 14.0_us, 14.0_us, 1.0},
                            0.935,
                            0.0,
                            0.0_us,
                            0.76,
                            10.0_us};

// An all-to-all's messages start together: a step costs this much of a ring's.
constexpr double exchange_hop = 0.4;
// Own part of a gathered vector, read and written by few SMs: H100 1.13 TB/s, A100 0.55 (from how
// all_gather at 512 MiB grows with 2, 4, 8 GPUs).
constexpr double copy_share_of_memory = 0.3;
// NCCL gives the switch no reduction of four ranks or fewer; measured alike with and without.
constexpr std::int64_t in_switch_ranks = 5;

const Transport& transport_of(const Network& network) {
  if (network.link == GpuLink::pcie) return pcie;
  switch (network.architecture) {
    case GpuArchitecture::volta:
      return volta;
    case GpuArchitecture::ampere:
    case GpuArchitecture::ada:
      return ampere;
    case GpuArchitecture::hopper:
      return hopper;
    case GpuArchitecture::blackwell:
      return blackwell;
  }
  return hopper;
}

// --- the model ----------------------------------------------------------------------------------

// A group on its nodes: `ranks` in all, `local` on each of `nodes`.
class Spread {
 public:
  Spread(const Comm& comm, const Network& network)
      : comm_(comm),
        network_(network),
        transport_(transport_of(network)),
        ranks_(comm.group.ranks),
        local_(comm.group.ranks_per_node(network.gpus_per_node)),
        nodes_(comm.group.nodes(network.gpus_per_node)) {
    EXPECT(nodes_ == 1 || network.inter > BytesPerSecond());
    EXPECT(local_ == 1 || network.intra > BytesPerSecond());
  }

  Seconds time() const {
    Seconds best = std::min({ring(transport_.ll), ring(transport_.ll128), ring(transport_.simple)});
    if (comm_.op != CollectiveOp::all_reduce) return best;
    if (nodes_ > 1)
      best = std::min({best, tree(transport_.ll), tree(transport_.ll128), tree(transport_.simple)});
    if (switch_reduces()) best = std::min(best, in_switch());
    return best;
  }

 private:
  bool reduces_twice() const { return comm_.op == CollectiveOp::all_reduce; }
  bool exchanges() const { return comm_.op == CollectiveOp::all_to_all; }

  bool switch_reduces() const {
    const bool adds = comm_.dtype == Precision::fp16 || comm_.dtype == Precision::bf16 ||
                      comm_.dtype == Precision::fp32;
    return network_.in_switch_reduction && transport_.in_switch > 0 && adds &&
           local_ >= in_switch_ranks;
  }

  // Steps of all ranks around the ring; those that cross nodes pay the network.
  Seconds ring(const Protocol& protocol) const {
    const double rounds = reduces_twice() ? 2 : 1;
    const double steps = static_cast<double>(ranks_ - 1) * (exchanges() ? exchange_hop : 1);
    const double crossing = static_cast<double>(nodes_ - 1) * (exchanges() ? exchange_hop : 1);
    const Seconds latency = protocol.base + protocol.hop * (rounds * (steps - crossing)) +
                            (protocol.net_ring + network_.fabric_latency) * (rounds * crossing);
    const Seconds links = linked() / (network_.intra * link_share(protocol));
    return latency + std::max(links, through_nic(ring_share()) / protocol.net_share) + own_part();
  }

  // Up and down a chain in each node and a double binary tree over nodes.
  Seconds tree(const Protocol& protocol) const {
    const Seconds latency =
        protocol.base + 2 * (static_cast<double>(local_ - 1) * protocol.hop +
                             depth() * (protocol.net_tree + network_.fabric_latency));
    const Seconds links = linked() / (network_.intra * link_share(protocol));
    return latency + std::max(links, through_nic(tree_share()) / protocol.net_share);
  }

  Seconds in_switch() const {
    const Protocol& simple = transport_.simple;
    const Seconds latency =
        transport_.in_switch_base + 2 * depth() * (simple.net_tree + network_.fabric_latency);
    return latency + std::max(comm_.size / (network_.intra * transport_.in_switch),
                              through_nic(tree_share()));
  }

  double link_share(const Protocol& protocol) const {
    return protocol.share * (exchanges() ? transport_.exchange : 1);
  }
  double depth() const { return nodes_ > 1 ? std::ceil(std::log2(nodes_)) : 0; }

  // Bytes that a GPU puts on its links to the others of its node.
  Bytes linked() const {
    if (local_ == 1) return Bytes();
    const auto n = static_cast<double>(ranks_), k = static_cast<double>(local_);
    switch (comm_.op) {
      case CollectiveOp::all_reduce:
        return comm_.size * (2 * (n - 1) / n);
      case CollectiveOp::all_gather:
      case CollectiveOp::reduce_scatter:
        return comm_.size * ((n - 1) / n);
      case CollectiveOp::all_to_all:
        return comm_.size * ((k - 1) / n);
      case CollectiveOp::broadcast:
        return comm_.size;
    }
    return comm_.size;
  }

  // Share of `size` that a GPU's NIC carries: the ring enters a node once for each of its NICs; an
  // all-to-all sends what belongs to other nodes.
  double ring_share() const {
    const auto n = static_cast<double>(ranks_), k = static_cast<double>(local_);
    switch (comm_.op) {
      case CollectiveOp::all_reduce:
        return 2 * (n - 1) / n / k;
      case CollectiveOp::all_gather:
      case CollectiveOp::reduce_scatter:
        return (n - 1) / n / k;
      case CollectiveOp::all_to_all:
        return (n - k) / n * once_per_node();
      case CollectiveOp::broadcast:
        return 1 / k;
    }
    return 1;
  }
  // Of what leaves a node, the share left when the copies of a token for experts on one node travel
  // as one: of `copies` spread evenly over the nodes, how many nodes are met, over how many copies.
  double once_per_node() const {
    const auto copies = static_cast<double>(comm_.copies), nodes = static_cast<double>(nodes_);
    return nodes * (1 - std::pow(1 - 1 / nodes, copies)) / copies;
  }

  // Two nodes exchange halves of what they reduced; in a larger tree a node passes all of it up and
  // down.
  double tree_share() const { return (nodes_ == 2 ? 1.0 : 2.0) / static_cast<double>(local_); }

  Seconds through_nic(double share) const {
    if (nodes_ == 1) return Seconds();
    const std::int64_t span = (comm_.group.stride * (ranks_ - 1)) / network_.gpus_per_node + 1;
    const double thinned = span > network_.nodes_per_leaf ? network_.oversubscription : 1;
    return comm_.size * share / (network_.inter * network_.inter_efficiency) * thinned;
  }

  // Copied beside what is sent, unless the op works in place.
  Seconds own_part() const {
    const bool copies = comm_.op == CollectiveOp::all_gather ||
                        comm_.op == CollectiveOp::reduce_scatter || exchanges();
    if (!copies || network_.copy == BytesPerSecond()) return Seconds();
    return comm_.size / static_cast<double>(ranks_) / network_.copy;
  }

  const Comm& comm_;
  const Network& network_;
  const Transport& transport_;
  std::int64_t ranks_, local_, nodes_;
};

}  // namespace

Network network_of(const Cluster& cluster) {
  Network network;
  network.architecture = cluster.gpu.architecture;
  network.link = cluster.node.link;
  network.gpus_per_node = cluster.gpus_per_node;
  network.intra = cluster.intra();
  network.in_switch_reduction = cluster.node.nvls;
  network.copy = cluster.gpu.memory.bandwidth.value() * copy_share_of_memory;
  const Transport& transport = transport_of(network);
  network.intra_efficiency = transport.message;
  network.intra_latency = transport.message_latency;
  if (!cluster.fabric) return network;

  network.inter = cluster.inter();
  network.inter_efficiency = cluster.fabric->efficiency.value();
  network.fabric_latency = cluster.inter_latency();
  network.inter_latency = network.fabric_latency + transport.simple.net_ring;
  network.oversubscription = cluster.oversubscription;
  // Half of a 64-port switch looks down: 32 nodes where each NIC of a node has a leaf of its own.
  network.nodes_per_leaf =
      cluster.fabric->rail_optimised ? 32 : std::max<std::int64_t>(1, 32 / cluster.gpus_per_node);
  return network;
}

Seconds collective_time(const Comm& comm, const Network& network) {
  EXPECT(comm.group.ranks >= 1 && comm.size >= Bytes());
  if (comm.group.ranks == 1 || comm.size == Bytes()) return Seconds();
  return Spread(comm, network).time();
}

}  // namespace orrery

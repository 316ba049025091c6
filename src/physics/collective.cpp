#include "physics/collective.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace orrery {
namespace {

using P = CollectiveParameters;
constexpr std::array<Parameter<P>, 34> parameter_table = {{
    {{"ll_start", 1e-6, 20e-6, 4.7e-6, "of an LL ring"}, &P::ll_start},
    {{"ll_hop", 0.1e-6, 4e-6, 0.8e-6, "a step of it"}, &P::ll_hop},
    {{"reduce_hop", 0.5, 1.5, 0.95, "an all-reduce's step over a gather's"}, &P::reduce_hop},
    {{"ll_full_start", 0.01e-6, 8e-6, 0.8e-6, "more threads and channels"}, &P::ll_full_start},
    {{"ll_full_hop", 0.01e-6, 3e-6, 0.25e-6, "likewise, a step"}, &P::ll_full_hop},
    {{"ll_full_at", 500, 200e3, 3e3, "chunk from which on"}, &P::ll_full_at},
    {{"ll_free", 1e3, 1e6, 54e3, "of a chunk, within the latency"}, &P::ll_free},
    {{"ll_rate", 0.05, 0.5, 0.44, "share of the links"}, &P::ll_rate},
    {{"ll128_start", 2e-6, 60e-6, 15e-6, "of an LL128 ring"}, &P::ll128_start},
    {{"ll128_hop", 0.02e-6, 5e-6, 0.3e-6, "a step of it"}, &P::ll128_hop},
    {{"ll128_rate", 0.1, 0.94, 0.62, "share of the links"}, &P::ll128_rate},
    {{"simple_start", 2e-6, 80e-6, 16e-6, "of a Simple ring"}, &P::simple_start},
    {{"simple_hop", 0.02e-6, 12e-6, 0.5e-6, "a step of it"}, &P::simple_hop},
    {{"scatter_start", 2e-6, 80e-6, 13e-6, "of a reduce_scatter"}, &P::scatter_start},
    {{"simple_rate", 0.3, 1.0, 0.82, "share of the links"}, &P::simple_rate},
    {{"ramp", 0.5e-6, 300e-6, 40e-6, "lost before the full rate"}, &P::ramp},
    {{"ramp_at", 0.1e6, 500e6, 37e6, "bytes by which half of it is"}, &P::ramp_at},
    {{"ll_narrow", 0.001, 1, 0.06, "one-byte sums, LL"}, &P::ll_narrow},
    {{"narrow", 0.001, 0.5, 0.04, "one-byte sums, else"}, &P::narrow},
    {{"reduce_copy", 100e9, 20e12, 1.4e12, "own part of an all-reduce"}, &P::reduce_copy},
    {{"gather_copy", 100e9, 20e12, 0.9e12, "of a gather"}, &P::gather_copy},
    {{"scatter_copy", 100e9, 20e12, 0.9e12, "of a scatter"}, &P::scatter_copy},
    {{"switch_start", 5e-6, 100e-6, 20e-6, "of NVLS"}, &P::switch_start},
    {{"switch_rate", 0.3, 0.8, 0.6, "of NVLS, share of the links"}, &P::switch_rate},
    {{"switch_ramp", 0.5e-6, 400e-6, 60e-6, "lost before the full rate"}, &P::switch_ramp},
    {{"switch_ramp_at", 0.1e6, 30e6, 14e6, "bytes by which half of it is"}, &P::switch_ramp_at},
    {{"exchange_start", 1e-6, 40e-6, 6.2e-6, "of short messages"}, &P::exchange_start},
    {{"exchange_hop", 0.01e-6, 3e-6, 0.3e-6, "a peer more"}, &P::exchange_hop},
    {{"exchange_ll", 0.5e9, 100e9, 6e9, "of one short message"}, &P::exchange_ll},
    {{"exchange_full_start", 2e-6, 80e-6, 13e-6, "of long messages"}, &P::exchange_full_start},
    {{"exchange_free", 10e3, 10e6, 1e6, "within that"}, &P::exchange_free},
    {{"exchange_rate", 0.3, 1.0, 0.9, "share of the links"}, &P::exchange_rate},
    {{"crowd", 0.0001, 0.15, 0.03, "what a peer more costs of it"}, &P::crowd},
    {{"exchange_copy", 100e9, 20e12, 0.9e12, "own part"}, &P::exchange_copy},
}};

// Steps between nodes in NCCL's own model, without the fabric, and what flags leave of the NIC's
// rate (NVIDIA/nccl@5067397, src/graph/tuning.cc): LL, LL128, Simple.
constexpr double net_ring[] = {2.7e-6, 4.0e-6, 14e-6};
constexpr double net_tree[] = {5.0e-6, 8.5e-6, 14e-6};
constexpr double net_share[] = {0.5, 0.92, 1.0};
// Of a tree's rate by the same model, for powers of two from 64 B on.
constexpr double tree_corrections[3][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1}};
// Messages of an all-to-all start together: a node more costs this much of a ring's step.
constexpr double exchange_crossing = 0.4;
// NCCL gives the switch no reduction of four ranks or fewer.
constexpr double in_switch_ranks = 5;
// Crowding was measured among eight.
constexpr double most_crowding = 6;

double tree_correction(Protocol protocol, double size) {
  const auto& table = tree_corrections[static_cast<std::size_t>(protocol)];
  const double at = std::clamp(std::log2(size / 64), 0.0, 22.0);
  const auto below = static_cast<std::size_t>(at);
  const double share = at - std::floor(at);
  return table[below] * (1 - share) + table[std::min<std::size_t>(below + 1, 22)] * share;
}

// A group on its nodes; plain numbers in base units.
class Spread {
 public:
  Spread(const CollectiveShape& shape, const P& parameters)
      : shape_(shape),
        p_(parameters),
        ranks_(static_cast<double>(shape.ranks)),
        local_(static_cast<double>(shape.local)),
        nodes_(static_cast<double>(shape.nodes)),
        link_(shape.on.intra.value()),
        steps_(ring_steps(shape.op, ranks_)),
        chunk_(shape.size.value() / ranks_) {
    EXPECT(nodes_ == 1 || shape.on.inter > BytesPerSecond());
    EXPECT(local_ == 1 || link_ > 0);
  }

  CollectiveTime time() const {
    CollectiveTime best;
    if (exchanges()) {
      take(best, exchange(Protocol::ll), Protocol::ll);
      take(best, exchange(Protocol::simple), Protocol::simple);
    } else if (nodes_ == 1) {
      best = planned();
    } else {
      fastest_between_nodes(best);
    }
    best.extrapolated = nodes_ > 2;
    return best;
  }

 private:
  struct Line {
    double latency = 0, transfer = 0;
    double time() const { return latency + transfer; }
  };

  static void take(CollectiveTime& best, const Line& line, Protocol protocol, bool tree = false) {
    if (best.time > Seconds() && best.time.value() <= line.time()) return;
    best.time = Seconds(line.time());
    best.start = Seconds(line.latency);
    best.protocol = protocol;
    best.tree = tree;
  }

  // NCCL's choice, which may come too late or too early. Where it steps down to a faster line the
  // larger message is held to the time of the smaller.
  CollectiveTime planned() const {
    const NcclPlan plan({.op = shape_.op,
                         .ranks = ranks_,
                         .architecture = shape_.on.architecture,
                         .link = shape_.on.link,
                         .rate = shape_.on.intra,
                         .in_switch = switch_reduces()});
    const double size = shape_.size.value();
    CollectiveTime chosen;
    const Protocol protocol = plan.at(size);
    take(chosen, line(protocol, size), protocol);
    for (const Protocol earlier : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      const double end = plan.end(earlier);
      if (end > 0 && end < size) {
        chosen.time = std::max(chosen.time, Seconds(line(earlier, end).time()));
      }
    }
    return chosen;
  }

  void fastest_between_nodes(CollectiveTime& best) const {
    const double size = shape_.size.value();
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      take(best, ring(protocol, size), protocol);
      if (shape_.op == NcclOp::all_reduce) take(best, tree(protocol), protocol, true);
    }
    if (switch_reduces()) take(best, in_switch(size), Protocol::in_switch, true);
  }

  bool exchanges() const {
    return shape_.op == NcclOp::all_to_all || shape_.op == NcclOp::send_recv;
  }
  bool switch_reduces() const {
    const Precision dtype = shape_.dtype;
    const bool adds =
        dtype == Precision::fp16 || dtype == Precision::bf16 || dtype == Precision::fp32;
    return shape_.op == NcclOp::all_reduce && shape_.on.switch_reduces && adds &&
           local_ >= in_switch_ranks;
  }

  // --- lines; `size` is the message's, for asking about a smaller one ---------------------------

  Line line(Protocol protocol, double size) const {
    return protocol == Protocol::in_switch ? in_switch(size) : ring(protocol, size);
  }

  // Steps of all ranks around the ring; those that cross nodes pay the network.
  Line ring(Protocol protocol, double size) const {
    const double crossing = (shape_.op == NcclOp::all_reduce ? 2 : 1) * (nodes_ - 1);
    Line line = links(protocol, size, steps_ - crossing);
    const auto p = static_cast<std::size_t>(protocol);
    line.latency += crossing * (net_ring[p] + shape_.on.fabric_latency.value());
    line.transfer = std::max(line.transfer, through_nic(size, ring_share()) / net_share[p]);
    line.transfer += own_part(protocol, size);
    return line;
  }

  // Up and down a chain in each node and a double binary tree over nodes, which keeps the rate of
  // middle sizes down.
  Line tree(Protocol protocol) const {
    const double size = shape_.size.value();
    Line line = links(protocol, size, 2 * (local_ - 1));
    const auto p = static_cast<std::size_t>(protocol);
    line.latency += 2 * depth() * (net_tree[p] + shape_.on.fabric_latency.value());
    const double nic = through_nic(size, tree_share()) / net_share[p];
    line.transfer = std::max(line.transfer, nic) / tree_correction(protocol, size);
    return line;
  }

  Line in_switch(double size) const {
    const double ramp = p_.switch_ramp.value() * size / (size + p_.switch_ramp_at.value());
    return {
        p_.switch_start.value() + 2 * depth() * (net_tree[2] + shape_.on.fabric_latency.value()),
        std::max(size / (link_ * p_.switch_rate) + ramp, through_nic(size, tree_share()))};
  }

  // `steps` of the ring over the links of a node.
  Line links(Protocol protocol, double size, double steps) const {
    switch (protocol) {
      case Protocol::ll:
        return ll(size, steps);
      case Protocol::ll128:
        return {p_.ll128_start.value() + steps * p_.ll128_hop.value(),
                narrow(p_.narrow) * linked(size) / (link_ * p_.ll128_rate)};
      default: {
        const Seconds start =
            shape_.op == NcclOp::reduce_scatter ? p_.scatter_start : p_.simple_start;
        return {start.value() + steps * p_.simple_hop.value(),
                narrow(p_.narrow) * linked(size) / (link_ * p_.simple_rate) + ramp(linked(size))};
      }
    }
  }

  Line ll(double size, double steps) const {
    const double hop = p_.ll_hop.value() * (shape_.op == NcclOp::all_reduce ? p_.reduce_hop : 1);
    const double chunk = size / ranks_;
    const double over = std::pow(chunk / p_.ll_full_at.value(), 2);
    const double full = over / (1 + over);
    const double more = full * (p_.ll_full_start.value() + steps * p_.ll_full_hop.value());
    const double moved = std::max(0.0, linked(size) + chunk - (steps_ + 1) * p_.ll_free.value());
    const double slow = narrow(p_.ll_narrow);
    return {p_.ll_start.value() + steps * hop + slow * more,
            local_ == 1 ? 0 : slow * moved / (link_ * p_.ll_rate)};
  }

  // All messages of a rank leave together.
  Line exchange(Protocol protocol) const {
    const double size = shape_.size.value();
    const bool pair = shape_.op == NcclOp::send_recv;
    const bool is_short = protocol == Protocol::ll;
    const auto p = static_cast<std::size_t>(protocol);
    const double crossing = exchange_crossing * (nodes_ - 1);
    const double latency = p_.exchange_hop.value() * (local_ - 1) +
                           crossing * (net_ring[p] + shape_.on.fabric_latency.value());
    const double nic = through_nic(size, ring_share()) / net_share[p];
    if (is_short) {
      const double message = pair ? size : chunk_;
      return {p_.exchange_start.value() + latency,
              std::max(
                  {message / p_.exchange_ll.value(), local_ == 1 ? 0 : linked(size) / link_, nic})};
    }
    const double sent = linked(size);
    const double crowding = 1 + p_.crowd * std::min(std::max(local_ - 2, 0.0), most_crowding);
    const double transfer = local_ == 1 ? 0
                                        : std::max(0.0, sent - p_.exchange_free.value()) /
                                                  (link_ * p_.exchange_rate) * crowding +
                                              ramp(sent);
    return {p_.exchange_full_start.value() + latency,
            std::max(transfer, nic) + (pair ? 0 : chunk_ / p_.exchange_copy.value())};
  }

  // --- parts ------------------------------------------------------------------------------------

  // Bytes that a GPU puts on its links to the others of its node.
  double linked(double size) const {
    if (local_ == 1) return 0;
    switch (shape_.op) {
      case NcclOp::all_to_all:
        return size * (local_ - 1) / ranks_;
      case NcclOp::broadcast:
      case NcclOp::send_recv:
        return size;
      default:
        return size * steps_ / ranks_;
    }
  }

  double ramp(double bytes) const {
    return bytes > 0 ? p_.ramp.value() * bytes / (bytes + p_.ramp_at.value()) : 0;
  }

  // Integers of one byte take more additions a byte.
  double narrow(double cost) const {
    const bool adds = shape_.op == NcclOp::all_reduce || shape_.op == NcclOp::reduce_scatter;
    return adds && element_size(shape_.dtype) <= Bytes(1) ? 1 + cost : 1;
  }

  // A rank's own part, written beside what is sent.
  double own_part(Protocol protocol, double size) const {
    if (protocol == Protocol::ll) return 0;  // among what LL moves
    const double part = size / ranks_;
    switch (shape_.op) {
      case NcclOp::all_reduce:
        return part / p_.reduce_copy.value();
      case NcclOp::all_gather:
        return part / p_.gather_copy.value();
      case NcclOp::reduce_scatter:
        return part / p_.scatter_copy.value();
      default:
        return 0;
    }
  }

  double depth() const { return nodes_ > 1 ? std::ceil(std::log2(nodes_)) : 0; }

  // Share of the message that a GPU's NIC carries: the ring enters a node once for each of its
  // NICs; an all-to-all sends what belongs to other nodes.
  double ring_share() const {
    switch (shape_.op) {
      case NcclOp::all_reduce:
      case NcclOp::all_gather:
      case NcclOp::reduce_scatter:
        return steps_ / ranks_ / local_;
      case NcclOp::all_to_all:
        return (ranks_ - local_) / ranks_ * once_per_node();
      case NcclOp::broadcast:
        return 1 / local_;
      case NcclOp::send_recv:
        return 1;
    }
    return 1;
  }

  // Of what leaves a node, the share left when the copies of a token for experts on one node travel
  // as one: of `copies` spread evenly over the nodes, how many nodes are met, over how many copies.
  double once_per_node() const {
    const auto copies = static_cast<double>(shape_.copies);
    return nodes_ * (1 - std::pow(1 - 1 / nodes_, copies)) / copies;
  }

  // Two nodes exchange halves of what they reduced; in a larger tree a node passes all of it up and
  // down.
  double tree_share() const { return (nodes_ == 2 ? 1.0 : 2.0) / local_; }

  double through_nic(double size, double share) const {
    return nodes_ == 1 ? 0 : size * share / shape_.on.inter.value();
  }

  const CollectiveShape& shape_;
  const P& p_;
  double ranks_, local_, nodes_, link_, steps_, chunk_;
};

CollectiveTime timed(const CollectiveShape& shape, const P& parameters) {
  EXPECT(shape.ranks >= 1 && shape.local >= 1 && shape.nodes >= 1 && shape.size >= Bytes());
  if (shape.ranks == 1 || shape.size == Bytes()) return {};
  return Spread(shape, parameters).time();
}

}  // namespace

std::span<const Parameter<P>> CollectiveParameters::parameters() { return parameter_table; }

Seconds collective_seconds(const CollectiveShape& shape, const P& parameters) {
  return timed(shape, parameters).time;
}

CollectiveTime collective_time(const CollectiveShape& shape, const P& parameters,
                               const Device& device) {
  CollectiveTime answer = timed(shape, parameters);
  answer.bound = answer.start > 0.5 * answer.time ? Bound::latency : Bound::links;
  answer.bytes = 2 * shape.size;  // read and written once
  if (shape.copied) {
    answer.time += answer.bytes / device.memory;
    answer.bytes *= 2;
  }
  answer.memory = answer.bytes / device.memory;
  answer.clock = device.boost;
  answer.power = device.power.floor;
  if (answer.time > Seconds()) answer.power += answer.bytes * device.power.memory / answer.time;
  answer.power = std::min(answer.power, device.limit);
  return answer;
}

}  // namespace orrery

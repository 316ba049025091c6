#include "physics/expert_exchange.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace orrery {
namespace {

using P = ExpertExchangeParameters;
constexpr std::array<Parameter<P>, 6> parameter_table = {{
    {{"start", 2e-6, 100e-6, 12e-6, "of the kernels"}, &P::start},
    {{"expert", 0.1e-9, 200e-9, 10e-9, "of each expert, low latency"}, &P::expert},
    {{"token", 1e-9, 5e-6, 0.4e-6, "of one SM"}, &P::token},
    {{"copy", 0.1e-9, 5e-6, 0.05e-6, "of a token to one rank, of one SM"}, &P::copy},
    {{"sm_rate", 0.2e9, 200e9, 20e9, "of one SM, or of one lane"}, &P::sm_rate},
    {{"link_rate", 0.1, 1, 0.63, "share of the links"}, &P::link_rate},
}};

// What pure RDMA reaches of 50 GB/s: 41 in DeepEP's own low-latency table for 16 to 256 ranks
// (deepseek-ai/DeepEP@dd758ca, docs/legacy).
constexpr double nic_share = 0.82;

// Of the norm that joins what SMs can copy and what links can carry: nearly the longer of the two.
constexpr double overlap = 4;

// fp8 tokens bring a scale of four bytes for each 128 values.
double token_bytes(const ExpertExchangeShape& shape) {
  const auto hidden = static_cast<double>(shape.hidden);
  return shape.combine ? 2 * hidden : hidden + hidden / 128 * 4;
}

// Of `groups` of ranks, how many a token's experts lie in.
double met(double groups, double copies) { return groups * (1 - std::pow(1 - 1 / groups, copies)); }

}  // namespace

std::span<const Parameter<P>> ExpertExchangeParameters::parameters() { return parameter_table; }

KernelTime expert_exchange_time(const ExpertExchangeShape& shape, const P& p,
                                const Device& device) {
  EXPECT(shape.tokens >= 1 && shape.hidden >= 1 && shape.top_k >= 1 && shape.ranks >= 1);
  EXPECT(shape.nodes >= 1 && shape.sms >= 1 && shape.link > BytesPerSecond());
  EXPECT(shape.nodes == 1 || shape.nic > BytesPerSecond());
  const auto tokens = static_cast<double>(shape.tokens), top_k = static_cast<double>(shape.top_k);
  const auto experts = static_cast<double>(shape.experts);
  const auto ranks = static_cast<double>(shape.ranks), nodes = static_cast<double>(shape.nodes);
  const double bytes = token_bytes(shape);

  double start = p.start.value(), moved = 0, remote = 0;
  if (shape.low_latency) {
    const double lanes = std::max(1.0, std::min(experts, device.sms)) * top_k;
    start += experts * p.expert.value();
    moved = tokens * top_k * bytes *
            (1 / (shape.link.value() * p.link_rate) + 1 / (lanes * p.sm_rate.value()));
    remote = tokens * top_k * bytes * (1 - 1 / nodes);
  } else {
    const double copy = p.copy.value() + bytes / p.sm_rate.value();
    const double met_ranks = met(ranks, top_k);
    moved = norm(tokens / static_cast<double>(shape.sms) * (p.token.value() + met_ranks * copy),
                 tokens * met_ranks * bytes / (shape.link.value() * p.link_rate), overlap);
    remote = tokens * met(nodes, top_k) * (1 - 1 / nodes) * bytes;
  }
  if (nodes > 1) moved = std::max(moved, remote / (shape.nic.value() * nic_share));

  KernelTime answer;
  answer.start = Seconds(start);
  answer.time = Seconds(start + moved);
  answer.bytes = Bytes(2 * tokens * bytes * (shape.low_latency ? top_k : met(ranks, top_k)));
  answer.memory = answer.bytes / device.memory;
  answer.bound = moved > start ? Bound::links : Bound::latency;
  answer.clock = device.boost;
  answer.power =
      std::min(device.limit, device.power.floor + answer.bytes * device.power.memory / answer.time);
  return answer;
}

}  // namespace orrery

// How long DeepEP takes to send tokens to their experts and to bring the results back.
#pragma once

#include <cstdint>
#include <span>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

struct ExpertExchangeShape {
  bool combine = false;  ///< results come back in 16 bits; else tokens leave in 8
  bool low_latency = false;
  std::int64_t tokens = 1;  ///< of a rank
  std::int64_t hidden = 1, top_k = 1, experts = 1;
  std::int64_t ranks = 8, nodes = 1;
  std::int64_t sms = 24;  ///< given to it; low latency takes one an expert
  BytesPerSecond link;    ///< of one GPU, per direction, as printed
  BytesPerSecond nic;     ///< likewise
};

/// Normal kernels send a token once to each rank that has one of its experts; low-latency ones once
/// to each expert:
///   normal       start + the longer of tokens / sms (token + ranks met (copy + bytes / sm_rate))
///                and tokens ranks met bytes / link_rate
///   low latency  start + experts expert + tokens top_k bytes (1 / link_rate + 1 / lanes)
/// where lanes are min(experts, SMs) top_k, of sm_rate each. Between nodes the NIC carries what
/// leaves the node.
struct ExpertExchangeParameters {
  Seconds start;
  Seconds expert;
  Seconds token, copy;
  BytesPerSecond sm_rate;
  double link_rate = 0.63;  ///< share of the links

  static std::span<const Parameter<ExpertExchangeParameters>> parameters();
};

KernelTime expert_exchange_time(const ExpertExchangeShape& shape,
                                const ExpertExchangeParameters& parameters, const Device& device);

}  // namespace orrery

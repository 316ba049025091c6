// Durations of a Program's instructions on a cluster, as one framework plays them.
#pragma once

#include "catalog/cluster.h"
#include "catalog/framework.h"
#include "catalog/kernel_rates.h"
#include "cost/estimate.h"
#include "plan/program.h"

namespace orrery {

struct Machine {
  const Cluster& cluster;
  const KernelRates& rates;
  const Framework& framework;
  AttentionKernel attention;
  Watts power_limit;
};

/// One price an interned kernel and collective. A framework that hides part of a collective behind
/// compute is priced by its `exposed` share: tensor and context collectives, which stand on the
/// critical path, shrink to it; those on the data stream keep their length and take that share
/// from the compute stream.
Prices price(const Program& program, const Machine& machine);

}  // namespace orrery

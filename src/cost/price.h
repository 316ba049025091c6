// Durations of a Program's instructions on a cluster, as one framework plays them.
#pragma once

#include "catalog/cluster.h"
#include "catalog/framework.h"
#include "cost/estimate.h"
#include "cost/job_kernels.h"
#include "plan/program.h"

namespace orrery {

struct Machine {
  const Cluster& cluster;
  const JobKernels& kernels;
  const Framework& framework;
  AttentionKernel attention;
};

/// One price an interned kernel and collective. A framework that hides part of a collective behind
/// compute is priced by its `exposed` share: tensor and context collectives, which stand on the
/// critical path, shrink to it; those on the data stream keep their length and take that share
/// from the compute stream.
Prices price(const Program& program, const Machine& machine);

}  // namespace orrery

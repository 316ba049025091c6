// What the kernels of a job are priced by: the GPU and the parameters of its kernel models.
#pragma once

#include <optional>

#include "catalog/catalog.h"
#include "catalog/kernel_rates.h"
#include "physics/device.h"
#include "physics/gemm.h"

namespace orrery {

struct JobKernels {
  Gpu gpu;
  Device device;      // the same under the job's power limit
  KernelRates rates;  // what whole steps keep of the kernels' speed
  // Of matrix products in 32, 16 and 8 bits, by the library that the catalog prefers. A GPU that
  // has no set of its own is priced by the closest one, scaled by its own rates.
  GemmParameters full, sixteen_bit, eight_bit;

  const GemmParameters& gemm(Precision precision) const;
};

JobKernels job_kernels(const Catalog& catalog, const Gpu& gpu,
                       std::optional<Watts> power_limit = std::nullopt);

}  // namespace orrery

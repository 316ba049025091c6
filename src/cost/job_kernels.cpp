#include "cost/job_kernels.h"

#include <initializer_list>
#include <string_view>

#include "core/error.h"

namespace orrery {
namespace {

// Of the first variant that any set has, on this architecture if one of them is.
GemmParameters gemm_parameters(const KernelSets& sets, const Gpu& gpu,
                               std::initializer_list<std::string_view> variants) {
  FoundSet best;
  for (const std::string_view variant : variants) {
    const FoundSet found = sets.find("gemm", variant, "", gpu);
    if (!found.set) continue;
    if (found.set->architecture == gpu.architecture)
      return parameters_from<GemmParameters>(*found.set);
    if (!best.set) best = found;
  }
  if (!best.set) {
    throw InputError("no parameters of matrix products", "", "see `orrery fit`", "parameters");
  }
  return parameters_from<GemmParameters>(*best.set);
}

}  // namespace

const GemmParameters& JobKernels::gemm(Precision precision) const {
  const Bytes element = element_size(precision);
  if (element < Bytes(2)) return eight_bit;
  return element > Bytes(2) && precision != Precision::tf32 ? full : sixteen_bit;
}

JobKernels job_kernels(const Catalog& catalog, const Gpu& gpu, std::optional<Watts> power_limit) {
  const KernelSets& sets = catalog.kernel_sets();
  return {.gpu = gpu,
          .device = device_of(gpu, power_limit),
          .rates = catalog.kernel_rates(gpu.architecture),
          .full = gemm_parameters(sets, gpu, {"fp32", "bf16", "fp16"}),
          .sixteen_bit = gemm_parameters(sets, gpu, {"bf16", "fp16"}),
          .eight_bit = gemm_parameters(sets, gpu, {"fp8", "int8", "bf16", "fp16"})};
}

}  // namespace orrery

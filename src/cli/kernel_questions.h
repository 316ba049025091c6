// The operators that `orrery kernel` answers for, and their flags made into a model's question.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "physics/device.h"
#include "tables/kernel_row.h"
#include "twin/scenario.h"

namespace orrery::cli {

struct KernelQuestion {
  std::string op;                     ///< of a model: "gemm"
  std::vector<std::string> variants;  ///< whose parameters fit, the closest first
  KernelShape shape;
  Precision unit = Precision::bf16;  ///< whose peak bounds it
};

/// On what a question is asked.
struct Machine {
  const Catalog& catalog;
  Gpu gpu;
  Device device;
};

struct KernelOp {
  std::string_view name;  ///< as typed: "gemm", "all_reduce"
  std::vector<std::string_view> flags;
  KernelQuestion (*ask)(const Request&, const Machine&, std::string_view name);
};

std::span<const KernelOp> kernel_ops();
/// InputError with a near miss, or with all that are known.
const KernelOp& kernel_op_named(const std::string& name);

/// Fills in what the library decides: whose attention kernels run, and what they attend to.
/// Returns what the reader should be warned of, or nothing.
std::string settle(KernelShape& shape, std::string_view library, const Gpu& gpu);

}  // namespace orrery::cli

// Models of operators behind one interface: what a fit and a validation ask of each.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "catalog/kernel_sets.h"
#include "tables/kernel_row.h"

namespace orrery {

/// An operator's model with its parameters as plain numbers in base units.
struct Operator {
  std::string_view op;
  std::vector<ParameterInfo> parameters;
  std::function<KernelTime(const KernelShape&, const KernelSet&, const Device&)> time;
  /// Of several rows on one GPU, by one set of values: seconds.
  std::function<std::vector<double>(std::span<const KernelRow>, const Device&,
                                    std::span<const double>)>
      times;
  std::function<std::vector<double>(const KernelSet&)> values;
  std::function<void(std::span<const double>, KernelSet&)> write;
};

std::span<const Operator> operators();
/// nullptr where no model has that name.
const Operator* operator_named(std::string_view op);

}  // namespace orrery

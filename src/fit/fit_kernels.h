// Parameter sets from tables of kernel timings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/kernel_sets.h"
#include "fit/minimise.h"
#include "tables/kernel_row.h"

namespace orrery {

/// Empty words leave nothing out.
struct FitRequest {
  std::string op, variant, library, gpu;
  std::int64_t rows = 900;   ///< of the seen half, at most
  std::int64_t fewest = 40;  ///< a group with fewer rows is not fitted
  MinimiseOptions minimise;
};

/// One set for each operator, variant, library and GPU of the table. Half of the shape families, by
/// a hash of their names, are shown to the fit; `unseen` has the errors of the others. Where
/// `known` has a set of the group, its values are where the search starts. `progress(text)` is
/// called before each group.
std::vector<KernelSet> fit_kernels(const KernelTable& table, const Catalog& catalog,
                                   const KernelSets& known, const FitRequest& request,
                                   const std::function<void(const std::string&)>& progress = {});

/// Whether a fit is shown a family.
bool seen_by_fit(std::uint64_t family);

}  // namespace orrery

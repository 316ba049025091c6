// Rows of a table of collectives that time DeepEP.
#pragma once

#include <string>

#include "core/csv_cells.h"
#include "tables/kernel_row.h"

namespace orrery {

/// Fills in all but the line, the GPU, the source and the time. Empty where it is read; else why it
/// is not.
std::string read_expert_exchange(const CsvCells& cells, KernelRow& row);

}  // namespace orrery

// Tables of kernel timings, told apart by their columns.
#pragma once

#include <optional>
#include <string>

#include "core/csv.h"
#include "tables/kernel_row.h"

namespace orrery {

/// gemm, attention, mla, moe, memory or collectives; nothing for the columns of another table.
/// A row that no model speaks of is skipped with its reason. InputError at "place:line" for a cell
/// that is no number or out of range.
std::optional<KernelTable> kernel_table_from_csv(const CsvTable& table, const std::string& place);

// One a kind, in a file of its own.
KernelTable attention_table(const CsvTable& table, const std::string& place);
KernelTable collective_table(const CsvTable& table, const std::string& place);
KernelTable gemm_table(const CsvTable& table, const std::string& place);
KernelTable memory_table(const CsvTable& table, const std::string& place);
KernelTable mla_table(const CsvTable& table, const std::string& place);

}  // namespace orrery

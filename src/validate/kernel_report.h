// Published kernel and collective timings against their models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/kernel_sets.h"
#include "core/json.h"
#include "tables/kernel_evidence.h"
#include "tables/kernel_row.h"
#include "validate/statistics.h"
#include "validate/validate.h"

namespace orrery {

/// Errors are predicted / measured - 1.
struct ValidatedKernel {
  const KernelRow* row = nullptr;  ///< of the table, which must outlive the report
  KernelTime predicted;
  double error = 0;
  bool seen = false;          ///< its shape family was shown to the fit of its set
  bool extrapolated = false;  ///< by the set of another GPU or library
};

struct KernelReport {
  std::string kind;
  std::vector<ValidatedKernel> rows;
  std::vector<SkippedRow> skipped;  ///< id: the line
  ErrorStatistics summary;
  /// By library, gpu, variant, source, time band, size band of collectives, families seen or
  /// unseen, and by set: "gemm bf16 tensorrt-llm h100-sxm", of which "unseen" too.
  std::vector<ErrorGroup> groups;
};

/// Rows on a GPU that the catalog lacks, or without any set for their variant, are skipped by line.
KernelReport validate_kernels(const KernelTable& table, const Catalog& catalog,
                              const KernelSets& sets);

/// A group for each operator, variant, library and GPU that has a set of its own.
std::vector<KernelEvidence> evidence_of(const KernelReport& report);

Json to_json(const KernelReport& report);
std::vector<TextTable> tables_of(const KernelReport& report);

}  // namespace orrery

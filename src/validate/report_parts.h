// What the reports of jobs and of kernels have in common.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "validate/validate.h"

namespace orrery {

Json group_json(const std::vector<ErrorGroup>& groups);
/// n, skipped and the errors.
Json summary_json(const ErrorStatistics& errors, const std::vector<SkippedRow>& skipped);

TextTable error_table(std::string title, std::string first_row, const ErrorStatistics& all,
                      const std::vector<ErrorGroup>& groups);
/// A line a reason, with the first row that it left out.
TextTable skipped_table(const std::vector<SkippedRow>& skipped);

}  // namespace orrery

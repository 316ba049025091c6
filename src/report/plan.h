// What a search found, for people and as JSON.
#pragma once

#include <ostream>

#include "core/json.h"
#include "report/tables.h"
#include "twin/found.h"

namespace orrery {

/// The best strategies in one table, and what each other one costs more.
void print_plan(std::ostream& out, const Found& found, const Style& style);

/// The keys of docs/formats.md; `taken` is the time that the search took.
Json to_json(const Found& found, Seconds taken);

}  // namespace orrery

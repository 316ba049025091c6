// Catalog entries for people: every fact with how it is known and where it was read.
#pragma once

#include <ostream>

#include "catalog/catalog.h"
#include "report/tables.h"

namespace orrery {

void print_entry(std::ostream& out, const CatalogEntry& entry, const Style& style);

/// Names by kind, with titles and aliases.
void print_names(std::ostream& out, const Catalog& catalog, const Style& style);

Json names_json(const Catalog& catalog);

}  // namespace orrery

// Catalog entries for people: every fact with how it is known and where it was read.
#pragma once

#include <optional>
#include <ostream>
#include <span>
#include <string_view>

#include "catalog/catalog.h"
#include "report/tables.h"

namespace orrery {

void print_entry(std::ostream& out, const CatalogEntry& entry, const Style& style);

/// "gpus" or "gpu", of the kinds; none for any other word.
std::optional<EntryKind> kind_named(std::string_view word);

/// Names of these kinds, with titles and aliases; models that are not supported with the reason.
void print_names(std::ostream& out, const Catalog& catalog, std::span<const EntryKind> kinds,
                 const Style& style);

/// With them, `refused` models and why.
Json names_json(const Catalog& catalog, std::span<const EntryKind> kinds);

/// The entry's file, with the schema's version in front.
Json entry_json(const CatalogEntry& entry);

}  // namespace orrery

#include "report/catalog.h"

#include <sstream>

#include "cli/command.h"
#include "core/error.h"
#include "core/text.h"

namespace orrery::cli {

namespace {

Reply names(const Command& command, const Catalog& catalog, std::span<const EntryKind> kinds) {
  if (command.json) return {answered, names_json(catalog, kinds).dump(2) + "\n"};
  std::ostringstream out;
  print_names(out, catalog, kinds, command.style);
  return {answered, out.str()};
}

}  // namespace

Reply catalog_verb(const Command& command) {
  if (command.arguments.size() > 1) {
    throw InputError("unexpected argument " + in_quotes(command.arguments[1]), "",
                     "usage: orrery catalog [KIND|NAME]");
  }
  const Catalog catalog = Catalog::load(default_data_dir());
  if (command.arguments.empty()) return names(command, catalog, all_entry_kinds);
  const std::string& word = command.arguments.front();
  if (const auto kind = kind_named(word)) return names(command, catalog, {&*kind, 1});
  const CatalogEntry& entry = catalog.entry(word);
  if (command.json) return {answered, entry_json(entry).dump(2) + "\n"};
  std::ostringstream out;
  print_entry(out, entry, command.style);
  if (command.explain) out << "\n  read from " << entry.place << '\n';
  return {answered, out.str()};
}

}  // namespace orrery::cli

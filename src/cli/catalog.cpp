#include "report/catalog.h"

#include <sstream>

#include "cli/command.h"
#include "core/error.h"
#include "core/text.h"

namespace orrery::cli {

Reply catalog_verb(const Command& command) {
  if (command.arguments.size() > 1) {
    throw InputError("unexpected argument " + in_quotes(command.arguments[1]), "",
                     "usage: orrery catalog [NAME]");
  }
  const Catalog catalog = Catalog::load(default_data_dir());
  std::ostringstream out;
  if (command.arguments.empty()) {
    if (command.json) return {answered, names_json(catalog).dump(2) + "\n"};
    print_names(out, catalog, command.style);
    return {answered, out.str()};
  }
  const CatalogEntry& entry = catalog.entry(command.arguments.front());
  if (command.json) return {answered, entry.json.dump(2) + "\n"};
  print_entry(out, entry, command.style);
  if (command.explain) out << "\n  read from " << entry.place << '\n';
  return {answered, out.str()};
}

}  // namespace orrery::cli

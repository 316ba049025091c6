// A model as people name it: of the catalog, or a configuration of their own.
#pragma once

#include <string>

#include "catalog/catalog.h"

namespace orrery {

/// A text with "/" or ending in ".json" is the path of a config.json, named after its file, or
/// after its folder if the file is config.json; any other is a name or alias of the catalog.
/// InputError for a name that is not there, a file that cannot be read, a family or shape that
/// cannot be described.
Architecture named_model(const Catalog& catalog, const std::string& text);

}  // namespace orrery

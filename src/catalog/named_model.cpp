#include "catalog/named_model.h"

#include <filesystem>

#include "catalog/architecture_from_config.h"
#include "core/json.h"

namespace orrery {
namespace {

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

// "gpt/config.json" is gpt, "gpt.json" too.
std::string name_of_config(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  const bool plain = file.stem() == "config" && file.has_parent_path();
  return plain ? file.parent_path().filename().string() : file.stem().string();
}

}  // namespace

Architecture named_model(const Catalog& catalog, const std::string& text) {
  if (!is_path(text)) return catalog.model(text);
  Architecture model = architecture_from_config(read_json(text), text);
  model.name = name_of_config(text);
  return model;
}

}  // namespace orrery

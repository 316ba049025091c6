#include "catalog/catalog.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "catalog/architecture_from_config.h"
#include "catalog/sources.h"
#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string_view folder_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::gpu:
      return "gpus";
    case EntryKind::node:
      return "nodes";
    case EntryKind::fabric:
      return "fabrics";
    case EntryKind::model:
      return "models";
    case EntryKind::framework:
      return "frameworks";
    case EntryKind::kernels:
      return "kernels";
    case EntryKind::rules:
      return "rules";
    case EntryKind::power:
      return "power";
  }
  return "";
}

// Names are compared in lower case, with dashes: "H100_SXM" is h100-sxm.
std::string plain(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_' || c == ' ') c = '-';
  }
  return text;
}

// In the order of their names; none where there is no such folder.
std::vector<std::string> json_files(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    if (file.path().extension() == ".json") paths.push_back(file.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

CatalogEntry read_entry(EntryKind kind, const std::string& path) {
  Json json = read_json(path);
  Fields fields(json, path);
  CatalogEntry entry;
  entry.kind = kind;
  entry.place = path;
  entry.name = fields.required<std::string>("name");
  entry.aliases =
      fields.optional<std::vector<std::string>>("aliases").value_or(std::vector<std::string>());
  if (entry.name != fs::path(path).stem().string()) {
    fields.fail("name", "must be the name of the file, not " + in_quotes(entry.name));
  }
  entry.json = std::move(json);
  return entry;
}

// A copy with "value" set in the object at the end of `path`.
Json with_value(const Json& json, std::span<const std::string> path, double value) {
  Json copy = json;
  if (path.empty()) return copy.set("value", value);
  return copy.set(path.front(), with_value(json[path.front()], path.subspan(1), value));
}

ModelCard card_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  ModelCard card;
  card.name = fields.required<std::string>("name");
  card.title = fields.required<std::string>("title");
  fields.optional<std::vector<std::string>>("aliases");
  card.config = fields.required<Json>("config");
  const auto source = fields.required<std::string>("config_source");
  card.published_parameters = fields.required<Fact<double>>("published_parameters");
  card.tolerance = fields.required_in<double>("tolerance", 0, 1);
  if (!fields.required_json("sources").contains(source)) {
    fields.fail("config_source", "no source " + source + " in this entry");
  }
  check_sources(fields);
  fields.finish();
  return card;
}

}  // namespace

std::string_view to_text(EntryKind kind) {
  switch (kind) {
    case EntryKind::gpu:
      return "gpu";
    case EntryKind::node:
      return "node";
    case EntryKind::fabric:
      return "fabric";
    case EntryKind::model:
      return "model";
    case EntryKind::framework:
      return "framework";
    case EntryKind::kernels:
      return "kernels";
    case EntryKind::rules:
      return "rules";
    case EntryKind::power:
      return "power";
  }
  return "";
}

Catalog Catalog::load(const std::string& data_dir) {
  Catalog catalog;
  for (const EntryKind kind : all_entry_kinds) {
    for (const std::string& path : json_files(fs::path(data_dir) / folder_of(kind))) {
      catalog.add(read_entry(kind, path));
    }
  }
  catalog.kernel_sets_ = KernelSets::load(data_dir);
  if (catalog.entries_.empty()) {
    throw InputError("no catalog here", "", "set ORRERY_DATA to the data folder", data_dir);
  }
  return catalog;
}

void Catalog::add(CatalogEntry entry) {
  std::vector<std::string> names = {entry.name};
  names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  for (const std::string& name : names) {
    if (name != plain(name)) {
      throw InputError("the name " + in_quotes(name) + " is not in lower case with dashes", "",
                       "write it " + in_quotes(plain(name)), entry.place);
    }
    for (const EntryKind kind : all_entry_kinds) {
      if (const CatalogEntry* other = find(kind, name)) {
        throw InputError("the name " + in_quotes(name) + " is taken", "by " + other->place, "",
                         entry.place);
      }
    }
    index_[entry.kind][name] = entries_.size();
  }
  entries_.push_back(std::move(entry));
}

const CatalogEntry* Catalog::find(EntryKind kind, std::string_view name) const {
  const auto names = index_.find(kind);
  if (names == index_.end()) return nullptr;
  const auto found = names->second.find(plain(name));
  if (found == names->second.end() || found->second >= entries_.size()) return nullptr;
  return &entries_[found->second];
}

bool Catalog::has(EntryKind kind, std::string_view name) const {
  return find(kind, name) != nullptr;
}

void Catalog::fail_missing(std::string_view what, std::string_view name,
                           const std::vector<EntryKind>& kinds) const {
  std::vector<std::string> known;
  for (const EntryKind kind : kinds) {
    const auto names = index_.find(kind);
    if (names == index_.end()) continue;
    for (const auto& [other, position] : names->second) known.push_back(other);
  }
  std::string suggestion = did_you_mean(plain(name), known);
  if (suggestion.empty()) suggestion = "`orrery catalog` lists what there is";
  throw InputError("no " + std::string(what) + " " + in_quotes(name) + " in the catalog", "",
                   suggestion);
}

const CatalogEntry& Catalog::entry(EntryKind kind, std::string_view name) const {
  const CatalogEntry* found = find(kind, name);
  if (!found) fail_missing(to_text(kind), name, {kind});
  return *found;
}

const CatalogEntry& Catalog::entry(std::string_view name) const {
  for (const EntryKind kind : all_entry_kinds) {
    if (const CatalogEntry* found = find(kind, name)) return *found;
  }
  fail_missing("entry", name, {all_entry_kinds.begin(), all_entry_kinds.end()});
}

Gpu Catalog::gpu(std::string_view name) const {
  const CatalogEntry& found = entry(EntryKind::gpu, name);
  Gpu gpu = gpu_from_json(found.json, found.place);
  const CatalogEntry& power = entry(EntryKind::power, gpu.power.set_name);
  gpu.power.set = power_set_from_json(power.json, power.place);
  return gpu;
}

Node Catalog::node(std::string_view name) const {
  const CatalogEntry& found = entry(EntryKind::node, name);
  return node_from_json(found.json, found.place);
}

Fabric Catalog::fabric(std::string_view name) const {
  const CatalogEntry& found = entry(EntryKind::fabric, name);
  return fabric_from_json(found.json, found.place);
}

ModelCard Catalog::model_card(std::string_view name) const {
  const CatalogEntry& found = entry(EntryKind::model, name);
  return card_from_json(found.json, found.place);
}

Architecture Catalog::model(std::string_view name) const {
  const CatalogEntry& found = entry(EntryKind::model, name);
  Architecture architecture =
      architecture_from_config(card_from_json(found.json, found.place).config, found.name);
  architecture.name = found.name;
  return architecture;
}

Framework Catalog::framework(std::string_view name) const {
  const CatalogEntry& found = entry(EntryKind::framework, name);
  Framework framework = framework_from_json(found.json, found.place);
  framework.rules = rules(framework.rules_entry);
  return framework;
}

FrameworkRules Catalog::rules(std::string_view name, std::string_view version) const {
  const CatalogEntry& found = entry(EntryKind::rules, name);
  return framework_rules_from_json(found.json, found.place, version);
}

KernelRates Catalog::kernel_rates(GpuArchitecture architecture) const {
  const CatalogEntry& found =
      entry(EntryKind::kernels, std::string(to_text(architecture)) + "-kernels");
  return kernel_rates_from_json(found.json, found.place);
}

Catalog Catalog::with(std::string_view name, const std::vector<std::string>& path,
                      double value) const {
  const CatalogEntry& old = entry(name);
  Catalog changed = *this;
  changed.entries_[static_cast<std::size_t>(&old - entries_.data())].json =
      with_value(old.json, path, value);
  return changed;
}

std::vector<std::string> Catalog::names(EntryKind kind) const {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : entries_) {
    if (entry.kind == kind) names.push_back(entry.name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> Catalog::names() const {
  std::vector<std::string> all;
  for (const EntryKind kind : all_entry_kinds) {
    const std::vector<std::string> some = names(kind);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string default_data_dir() {
  if (const char* chosen = std::getenv("ORRERY_DATA"); chosen && *chosen) return chosen;
  std::error_code error;
#ifdef ORRERY_SOURCE_DATA_DIR
  if (fs::is_directory(ORRERY_SOURCE_DATA_DIR, error)) return ORRERY_SOURCE_DATA_DIR;
#endif
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "share" / "orrery").string();
}

}  // namespace orrery

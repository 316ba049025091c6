#include "report/catalog.h"

#include "catalog/architecture_from_config.h"
#include "core/error.h"
#include "core/text.h"
#include "model/build.h"

namespace orrery {
namespace {

std::string plain(const Json& json) {
  if (json.is_string()) return json.as_string();
  if (json.is_null()) return "unknown";
  if (json.is_array()) {
    std::vector<std::string> items;
    for (const Json& item : json.items()) items.push_back(plain(item));
    return join(items);
  }
  return json.dump();
}

bool is_fact(const Json& json) { return json.contains("value") && json.contains("evidence"); }

std::string text_at(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found ? plain(*found) : "";
}

void add_rows(const Json& json, const std::string& path, Table& table) {
  if (is_fact(json)) {
    table.rows.push_back({path, text_at(json, "value"), text_at(json, "evidence"),
                          text_at(json, "source"), text_at(json, "note")});
    return;
  }
  if (!json.is_object()) {
    table.rows.push_back({path, plain(json), "", "", ""});
    return;
  }
  for (const auto& [key, value] : json.members()) {
    if (path.empty() && (key == "sources" || key == "name" || key == "title")) continue;
    add_rows(value, path.empty() ? key : path + "." + key, table);
  }
}

Table source_table(const Json& sources) {
  Table table{
      .columns = {{"source"}, {"title"}, {"where"}, {"read"}, {""}}, .rows = {}, .indent = "  "};
  for (const auto& [key, source] : sources.members()) {
    table.rows.push_back({key, text_at(source, "title"), text_at(source, "where"),
                          text_at(source, "read"), text_at(source, "url")});
  }
  return table;
}

// Why the model is described but not predicted; empty: it is.
std::string refusal(const Catalog& catalog, const std::string& model) {
  try {
    return unlowered(catalog.model(model));
  } catch (const InputError& error) {
    return error.problem;
  }
}

Table names_table(const Catalog& catalog, EntryKind kind) {
  Table table{.columns = {{std::string(to_text(kind))}, {"title"}, {"also called"}},
              .rows = {},
              .indent = "  "};
  const bool model = kind == EntryKind::model;
  if (model) table.columns.push_back({"not predicted"});
  for (const std::string& name : catalog.names(kind)) {
    const CatalogEntry& entry = catalog.entry(kind, name);
    table.rows.push_back({name, text_at(entry.json, "title"), join(entry.aliases)});
    if (model) table.rows.back().push_back(refusal(catalog, name));
  }
  return table;
}

constexpr std::size_t families_width = 96;

// The families of config.json, in lines.
void print_families(std::ostream& out) {
  out << "\n  read too: a config.json whose model_type is one of\n";
  std::string line;
  for (const std::string& family : supported_families()) {
    if (line.size() + family.size() > families_width) {
      out << "   " << line << '\n';
      line.clear();
    }
    line += " " + family;
  }
  out << "   " << line << '\n';
}

}  // namespace

std::optional<EntryKind> kind_named(std::string_view word) {
  for (const EntryKind kind : all_entry_kinds) {
    if (word == to_text(kind) || word == std::string(to_text(kind)) + "s") return kind;
  }
  return std::nullopt;
}

void print_entry(std::ostream& out, const CatalogEntry& entry, const Style& style) {
  out << style.bold(entry.name) << "  " << to_text(entry.kind);
  const std::string title = text_at(entry.json, "title");
  out << (title.empty() ? "" : ", " + title) << "\n\n";
  Table facts{.columns = {{"fact"}, {"value"}, {"known by"}, {"source"}, {"note"}},
              .rows = {},
              .indent = "  "};
  add_rows(entry.json, "", facts);
  print_table(out, facts, style);
  if (const Json* sources = entry.json.find("sources")) {
    out << '\n';
    print_table(out, source_table(*sources), style);
  }
}

void print_names(std::ostream& out, const Catalog& catalog, std::span<const EntryKind> kinds,
                 const Style& style) {
  for (const EntryKind kind : kinds) {
    if (kind != kinds.front()) out << '\n';
    print_table(out, names_table(catalog, kind), style);
    if (kind == EntryKind::model) print_families(out);
  }
}

Json names_json(const Catalog& catalog, std::span<const EntryKind> kinds) {
  Json json = Json::object({{"schema_version", 1}});
  for (const EntryKind kind : kinds) {
    Json names = Json::array();
    Json refused = Json::object();
    for (const std::string& name : catalog.names(kind)) {
      names.push_back(name);
      if (kind != EntryKind::model) continue;
      if (const std::string why = refusal(catalog, name); !why.empty()) refused.set(name, why);
    }
    json.set(to_text(kind), std::move(names));
    if (kind != EntryKind::model) continue;
    json.set("refused", std::move(refused));
    Json families = Json::array();
    for (const std::string& family : supported_families()) families.push_back(family);
    json.set("families", std::move(families));
  }
  return json;
}

Json entry_json(const CatalogEntry& entry) {
  Json json = Json::object({{"schema_version", 1}});
  for (const auto& [key, value] : entry.json.members()) json.set(key, value);
  return json;
}

}  // namespace orrery

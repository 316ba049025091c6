// What exists: GPUs, nodes, fabrics, models, frameworks and kernel rates, one file each, found by
// name or alias.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/architecture.h"
#include "catalog/fabric.h"
#include "catalog/framework.h"
#include "catalog/gpu.h"
#include "catalog/kernel_rates.h"
#include "catalog/kernel_sets.h"
#include "catalog/node.h"
#include "core/json.h"

namespace orrery {

enum class EntryKind { gpu, node, fabric, model, framework, kernels, rules, power };
inline constexpr std::array all_entry_kinds = {
    EntryKind::gpu,       EntryKind::node,    EntryKind::fabric, EntryKind::model,
    EntryKind::framework, EntryKind::kernels, EntryKind::rules,  EntryKind::power};

std::string_view to_text(EntryKind kind);

/// A file of the catalog as it was written, for whoever prints its facts and sources.
struct CatalogEntry {
  EntryKind kind = EntryKind::gpu;
  std::string name;
  std::string place;  ///< the file's path
  std::vector<std::string> aliases;
  Json json;
};

/// A model's configuration and what its authors say of its size.
struct ModelCard {
  std::string name;
  std::string title;
  Json config;
  Fact<double> published_parameters;
  double tolerance = 0;  ///< relative, of published_parameters; 0: exact
};

class Catalog {
 public:
  /// Reads every file of `data_dir`. InputError for a file that is no entry or a name used twice.
  static Catalog load(const std::string& data_dir);

  // By name or alias, in any case. InputError, with a near miss, for a name that is not there.
  Gpu gpu(std::string_view name) const;
  Node node(std::string_view name) const;
  Fabric fabric(std::string_view name) const;
  /// InputError too for a family that is not supported.
  Architecture model(std::string_view name) const;
  ModelCard model_card(std::string_view name) const;
  Framework framework(std::string_view name) const;
  /// What a framework of some version accepts ("megatron-rules"); the newest where none is named.
  FrameworkRules rules(std::string_view name, std::string_view version = "") const;
  KernelRates kernel_rates(GpuArchitecture architecture) const;
  /// Fitted parameters of kernel models.
  const KernelSets& kernel_sets() const { return kernel_sets_; }

  /// The same, with another value of one fact: `path` leads to it from the top of the entry.
  /// EXPECTs that it is there.
  Catalog with(std::string_view name, const std::vector<std::string>& path, double value) const;

  /// Of any kind.
  const CatalogEntry& entry(std::string_view name) const;
  const CatalogEntry& entry(EntryKind kind, std::string_view name) const;
  bool has(EntryKind kind, std::string_view name) const;

  /// Canonical names, sorted.
  std::vector<std::string> names(EntryKind kind) const;
  std::vector<std::string> names() const;

 private:
  void add(CatalogEntry entry);
  const CatalogEntry* find(EntryKind kind, std::string_view name) const;
  [[noreturn]] void fail_missing(std::string_view what, std::string_view name,
                                 const std::vector<EntryKind>& kinds) const;

  std::vector<CatalogEntry> entries_;
  KernelSets kernel_sets_;
  std::map<EntryKind, std::map<std::string, std::size_t, std::less<>>> index_;  // aliases too
};

/// $ORRERY_DATA, else the repository's data folder if it is still there, else
/// ../share/orrery seen from the program's folder.
std::string default_data_dir();

}  // namespace orrery

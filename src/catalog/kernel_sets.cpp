#include "catalog/kernel_sets.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/fields.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

FitErrors errors_of(Fields fields) {
  FitErrors errors;
  errors.n = fields.required_in<std::int64_t>("n", 0, std::int64_t{1} << 40);
  errors.median = fields.required_in<double>("median", 0, 1e6);
  errors.p90 = fields.required_in<double>("p90", 0, 1e6);
  fields.finish();
  return errors;
}

Json to_json(const FitErrors& errors) {
  return Json::object({{"n", errors.n}, {"median", errors.median}, {"p90", errors.p90}});
}

void read_set(Fields& fields, KernelSet& set) {
  set.variant = fields.required<std::string>("variant");
  set.preferred = fields.optional<bool>("preferred", false);
  set.note = fields.optional<std::string>("note", "");
  const Fields values = fields.nested("values");
  for (const auto& [name, value] : values.json().members()) set.values[name] = value;
  if (auto fit = fields.optional_nested("fit")) {
    set.seen = errors_of(fit->nested("seen"));
    set.unseen = errors_of(fit->nested("unseen"));
    fit->finish();
  } else if (set.note.empty()) {
    fields.fail("note", "missing", "say where the values are from, or give the fit");
  }
  fields.finish();
}

GpuArchitecture architecture_in(Fields& fields) {
  return fields.choice<GpuArchitecture>("architecture",
                                        {{"volta", GpuArchitecture::volta},
                                         {"ampere", GpuArchitecture::ampere},
                                         {"ada", GpuArchitecture::ada},
                                         {"hopper", GpuArchitecture::hopper},
                                         {"blackwell", GpuArchitecture::blackwell}});
}

int closeness(const KernelSet& set, std::string_view library, const Gpu& gpu) {
  return 8 * (set.architecture == gpu.architecture) + 4 * (set.library == library) +
         2 * (set.gpu == gpu.name) + (set.preferred ? 1 : 0);
}

}  // namespace

std::vector<KernelSet> kernel_sets_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  KernelSet common;
  common.place = place;
  common.op = fields.required<std::string>("op");
  common.library = fields.required<std::string>("library");
  common.gpu = fields.required<std::string>("gpu");
  common.architecture = architecture_in(fields);
  fields.ignore("about");
  std::vector<KernelSet> sets;
  for (Fields& one : fields.list("sets")) {
    sets.push_back(common);
    read_set(one, sets.back());
  }
  fields.finish();
  return sets;
}

Json to_json(const std::vector<KernelSet>& sets) {
  EXPECT(!sets.empty());
  Json list = Json::array();
  for (const KernelSet& set : sets) {
    EXPECT(file_of(set) == file_of(sets.front()));
    Json values = Json::object();
    for (const auto& [name, value] : set.values) values.set(name, value);
    Json one = Json::object({{"variant", set.variant}});
    if (set.preferred) one.set("preferred", true);
    if (!set.note.empty()) one.set("note", set.note);
    one.set("values", std::move(values));
    if (set.seen.n > 0) {
      one.set("fit", Json::object({{"seen", to_json(set.seen)}, {"unseen", to_json(set.unseen)}}));
    }
    list.push_back(std::move(one));
  }
  const KernelSet& first = sets.front();
  return Json::object({{"op", first.op},
                       {"library", first.library},
                       {"gpu", first.gpu},
                       {"architecture", std::string(to_text(first.architecture))},
                       {"about", "written by: orrery fit"},
                       {"sets", std::move(list)}});
}

std::string file_of(const KernelSet& set) {
  return set.op + "/" + set.library + "-" + set.gpu + ".json";
}

KernelSets KernelSets::load(const std::string& data_dir) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& file :
       fs::recursive_directory_iterator(fs::path(data_dir) / "parameters", error)) {
    if (file.path().extension() == ".json") paths.push_back(file.path().string());
  }
  std::ranges::sort(paths);
  KernelSets all;
  for (const std::string& path : paths) {
    for (KernelSet& set : kernel_sets_from_json(read_json(path), path)) all.add(std::move(set));
  }
  return all;
}

void KernelSets::add(KernelSet set) {
  const auto same = std::ranges::find_if(sets_, [&](const KernelSet& other) {
    return file_of(other) == file_of(set) && other.variant == set.variant;
  });
  if (same == sets_.end()) {
    sets_.push_back(std::move(set));
  } else {
    *same = std::move(set);
  }
}

FoundSet KernelSets::find(std::string_view op, std::string_view variant, std::string_view library,
                          const Gpu& gpu) const {
  FoundSet found;
  int best = -1;
  for (const KernelSet& set : sets_) {
    if (set.op != op || set.variant != variant) continue;
    const int close = closeness(set, library, gpu);
    if (close <= best) continue;
    best = close;
    found = {&set, set.gpu == gpu.name, set.library == library};
  }
  return found;
}

}  // namespace orrery

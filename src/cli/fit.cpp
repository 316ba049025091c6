#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>

#include "cli/command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "fit/fit_kernels.h"
#include "tables/kernel_tables.h"

namespace orrery::cli {
namespace {

std::string option(const Command& command, const std::string& name) {
  const auto found = command.options.find(name);
  return found == command.options.end() ? "" : found->second;
}

std::int64_t count(const Command& command, const std::string& name, std::int64_t fallback) {
  const std::string text = option(command, name);
  if (text.empty()) return fallback;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1'000'000) {
    throw InputError("expected a whole number from 1 to 1000000, got " + in_quotes(text), "", "",
                     "--" + name);
  }
  return value;
}

KernelTable table_in(const Command& command) {
  if (command.arguments.size() != 1) {
    throw InputError("one table is needed", "", "usage: orrery fit TABLE.csv [flags]");
  }
  const std::string& file = command.arguments.front();
  auto table = kernel_table_from_csv(parse_csv(read_text(file, kMaxCsvBytes), file), file);
  if (!table) {
    throw InputError("not a table of kernel timings", "its columns are those of no such table",
                     "see docs/formats.md", file);
  }
  return *std::move(table);
}

std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

Table errors_table(const std::vector<KernelSet>& sets) {
  Table table;
  table.columns = {{"op"},
                   {"variant"},
                   {"library"},
                   {"GPU"},
                   {"seen", Align::right},
                   {"median %", Align::right},
                   {"p90 %", Align::right},
                   {"unseen", Align::right},
                   {"median %", Align::right},
                   {"p90 %", Align::right}};
  for (const KernelSet& set : sets) {
    table.rows.push_back({set.op, set.variant, set.library, set.gpu, std::to_string(set.seen.n),
                          percent(set.seen.median), percent(set.seen.p90),
                          std::to_string(set.unseen.n), percent(set.unseen.median),
                          percent(set.unseen.p90)});
  }
  return table;
}

// The files of the new sets, with what else stood in them.
std::map<std::string, std::vector<KernelSet>> files_of(KernelSets known,
                                                       const std::vector<KernelSet>& sets) {
  std::map<std::string, std::vector<KernelSet>> files;
  for (const KernelSet& set : sets) {
    known.add(set);
    files[file_of(set)];
  }
  for (const KernelSet& set : known.all()) {
    const auto file = files.find(file_of(set));
    if (file != files.end()) file->second.push_back(set);
  }
  return files;
}

void write(const std::string& path, const Json& json) {
  std::error_code error;  // what fails here fails to be written
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  write_text_atomically(path, json.dump(2) + "\n");
}

}  // namespace

Reply fit_verb(const Command& command) {
  const KernelTable table = table_in(command);
  const std::string data = default_data_dir();
  const KernelSets known = KernelSets::load(data);
  FitRequest request;
  request.op = option(command, "op");
  request.variant = option(command, "variant");
  request.library = option(command, "library");
  request.gpu = option(command, "timed-on");
  request.rows = count(command, "rows", request.rows);
  request.minimise.evaluations =
      static_cast<int>(count(command, "evaluations", request.minimise.evaluations));
  const auto progress = [&](const std::string& group) {
    if (command.show_progress) std::fprintf(stderr, "fitting %s\n", group.c_str());
  };
  const std::vector<KernelSet> sets =
      fit_kernels(table, Catalog::load(data), known, request, progress);
  if (sets.empty()) {
    throw InputError(
        "no group of rows to fit",
        "a group is of one operator, variant, library and GPU of the catalog and has " +
            std::to_string(request.fewest) + " rows or more");
  }
  Json list = Json::array();
  for (const auto& [file, members] : files_of(known, sets)) {
    const Json json = to_json(members);
    if (command.switches.contains("write")) write(data + "/parameters/" + file, json);
    list.push_back(json);
  }
  const Json answer = Json::object({{"schema_version", 1}, {"files", std::move(list)}});
  if (const std::string out = option(command, "out"); !out.empty()) {
    write_text_atomically(out, answer.dump(2) + "\n");
  }
  if (command.json) return {answered, answer.dump(2) + "\n"};
  std::ostringstream out;
  print_table(out, errors_table(sets), command.style);
  return {answered, out.str()};
}

}  // namespace orrery::cli

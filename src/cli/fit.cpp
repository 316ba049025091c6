#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "catalog/entry_text.h"
#include "cli/command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "fit/fit_kernels.h"
#include "tables/kernel_tables.h"
#include "validate/job_fit.h"
#include "validate/measurement.h"

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

std::string percent(const std::optional<double>& share) { return share ? percent(*share) : "-"; }

Table job_fit_table(const JobFit& fit) {
  Table table;
  table.columns = {{"parameter"},
                   {"before", Align::right},
                   {"after", Align::right},
                   {"seen", Align::right},
                   {"median %", Align::right},
                   {"unseen", Align::right},
                   {"median %", Align::right},
                   {"p90 %", Align::right}};
  for (const FittedParameter& one : fit.parameters) {
    table.rows.push_back({one.parameter.name(), fmt::format("{:.4g}", one.before),
                          fmt::format("{:.4g}", one.after), std::to_string(one.seen.n),
                          percent(one.seen.median), std::to_string(one.unseen.n),
                          percent(one.unseen.median), percent(one.unseen.p90)});
  }
  return table;
}

Json errors_json(const ErrorStatistics& errors) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  return Json::object(
      {{"n", errors.n}, {"median", or_null(errors.median)}, {"p90", or_null(errors.p90)}});
}

Json job_fit_json(const JobFit& fit) {
  Json list = Json::array();
  for (const FittedParameter& one : fit.parameters) {
    list.push_back(Json::object({{"parameter", one.parameter.name()},
                                 {"before", one.before},
                                 {"after", one.after},
                                 {"seen", errors_json(one.seen)},
                                 {"unseen", errors_json(one.unseen)}}));
  }
  return Json::object({{"schema_version", 1}, {"parameters", std::move(list)}});
}

std::function<void(const std::string&)> progress_of(const Command& command) {
  return [show = command.show_progress](const std::string& what) {
    if (show) std::fprintf(stderr, "fitting %s\n", what.c_str());
  };
}

Reply reply(const Command& command, const Json& answer, const Table& table) {
  if (const std::string file = option(command, "out"); !file.empty()) {
    write_text_atomically(file, answer.dump(2) + "\n");
  }
  if (command.json) return {answered, answer.dump(2) + "\n"};
  std::ostringstream out;
  print_table(out, table, command.style);
  return {answered, out.str()};
}

Reply fit_table(const KernelTable& table, const Command& command) {
  const std::string data = default_data_dir();
  const Catalog catalog = Catalog::load(data);
  const KernelSets& known = catalog.kernel_sets();
  FitRequest request;
  request.op = option(command, "op");
  request.variant = option(command, "variant");
  request.library = option(command, "library");
  request.gpu = option(command, "timed-on");
  request.rows = count(command, "rows", request.rows);
  request.minimise.evaluations =
      static_cast<int>(count(command, "evaluations", request.minimise.evaluations));
  const std::vector<KernelSet> sets =
      fit_kernels(table, catalog, known, request, progress_of(command));
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
  return reply(command, Json::object({{"schema_version", 1}, {"files", std::move(list)}}),
               errors_table(sets));
}

Reply fit_training(const std::vector<Measurement>& rows, const Command& command) {
  const std::string data = default_data_dir();
  const std::string list = data + "/fits/jobs.json";
  const JobFit fit =
      fit_jobs(rows, Catalog::load(data), job_parameters_from_json(read_json(list), list),
               static_cast<int>(count(command, "rounds", 1)), progress_of(command));
  if (command.switches.contains("write")) {
    for (const CatalogEntry& entry : fit.entries) {
      write_text_atomically(entry.place, entry_text(entry.json));
    }
  }
  return reply(command, job_fit_json(fit), job_fit_table(fit));
}

}  // namespace

Reply fit_verb(const Command& command) {
  if (command.arguments.size() != 1) {
    throw InputError("one table is needed", "", "usage: orrery fit TABLE.csv [flags]");
  }
  const std::string& file = command.arguments.front();
  const std::string text = read_text(file, kMaxCsvBytes);
  if (const auto table = kernel_table_from_csv(parse_csv(text, file), file)) {
    return fit_table(*table, command);
  }
  return fit_training(measurements_from_csv(text, file), command);
}

}  // namespace orrery::cli

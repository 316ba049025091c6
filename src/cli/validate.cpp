#include "validate/validate.h"

#include <algorithm>
#include <sstream>

#include "catalog/entry_text.h"
#include "cli/command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "tables/kernel_tables.h"
#include "validate/kernel_report.h"
#include "validate/measurement.h"

namespace orrery::cli {
namespace {

void print(std::ostream& out, const TextTable& text, const Style& style) {
  Table table;
  table.indent = "  ";
  for (std::size_t i = 0; i < text.columns.size(); ++i) {
    const bool numbers = std::all_of(text.rows.begin(), text.rows.end(), [&](const auto& row) {
      return row[i].find_first_not_of("0123456789.,%+- ") == std::string::npos;
    });
    table.columns.push_back({text.columns[i], numbers ? Align::right : Align::left});
  }
  table.rows = text.rows;
  out << style.bold(text.title) << '\n';
  print_table(out, table, style);
  out << '\n';
}

void print_rows(std::ostream& out, const Report& report, const Style& style) {
  Table table{.columns = {{"row"},
                          {"measured", Align::right},
                          {"predicted", Align::right},
                          {"error", Align::right},
                          {"filled in"}},
              .rows = {},
              .indent = "  "};
  for (const ValidatedRow& row : report.rows) {
    const auto text = [](const std::optional<double>& value) {
      return value ? grouped(*value) : std::string();
    };
    table.rows.push_back({row.id, text(row.measured), text(row.predicted),
                          row.error ? percent_text(*row.error) : "", join(row.defaults, "; ")});
  }
  out << style.bold("every row, tokens a second and GPU") << '\n';
  print_table(out, table, style);
}

// The report's groups, in place of those of its operators.
void write_evidence(const KernelReport& report, const std::string& data) {
  std::vector<KernelEvidence> table = load_kernel_evidence(data);
  const std::vector<KernelEvidence> groups = evidence_of(report);
  std::erase_if(table, [&](const KernelEvidence& old) {
    return std::ranges::any_of(groups, [&](const auto& group) { return group.op == old.op; });
  });
  table.insert(table.end(), groups.begin(), groups.end());
  std::ranges::sort(table, {}, &KernelEvidence::name);
  write_text_atomically(data + "/kernel_evidence.json", entry_text(to_json(table)));
}

Reply reply(const KernelReport& report, const Command& command) {
  if (command.json) return {answered, to_json(report).dump(2) + "\n"};
  std::ostringstream out;
  for (const TextTable& table : tables_of(report)) print(out, table, command.style);
  return {answered, out.str()};
}

}  // namespace

Reply validate_verb(const Command& command) {
  if (command.arguments.size() > 1) {
    throw InputError("unexpected argument " + in_quotes(command.arguments[1]), "",
                     "usage: orrery validate [FILE.csv]");
  }
  const std::string data = default_data_dir();
  const std::string file =
      command.arguments.empty() ? data + "/measurements/training.csv" : command.arguments.front();
  const std::string text = read_text(file, kMaxCsvBytes);
  const Catalog catalog = Catalog::load(data);
  if (const auto kernels = kernel_table_from_csv(parse_csv(text, file), file)) {
    const KernelReport report = validate_kernels(*kernels, catalog, catalog.kernel_sets());
    if (command.switches.contains("write-evidence")) write_evidence(report, data);
    return reply(report, command);
  }
  const Report report = validate(measurements_from_csv(text, file), catalog);
  if (command.switches.contains("write-evidence")) {
    write_text_atomically(data + "/evidence.json",
                          to_json(evidence_of(report, catalog)).dump(2) + "\n");
  }
  if (command.json) return {answered, to_json(report).dump(2) + "\n"};
  std::ostringstream out;
  for (const TextTable& table : tables_of(report)) print(out, table, command.style);
  if (command.explain) print_rows(out, report, command.style);
  return {answered, out.str()};
}

}  // namespace orrery::cli

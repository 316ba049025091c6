#include "core/csv.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  bool done() const { return at_ == text_.size(); }

  CsvRow read_row() {
    CsvRow row{line_, {}};
    do {
      row.cells.push_back(peek() == '"' ? read_quoted() : read_plain());
      if (row.cells.size() > kMaxCsvColumns) {
        fail("more than " + std::to_string(kMaxCsvColumns) + " columns");
      }
    } while (take(','));
    end_row();
    return row;
  }

  [[noreturn]] void fail(const std::string& problem, const std::string& suggestion = "") const {
    fail_at(line_, problem, suggestion);
  }
  [[noreturn]] void fail_at(std::int64_t line, const std::string& problem,
                            const std::string& suggestion = "") const {
    throw InputError(problem, "", suggestion, place_ + ":" + std::to_string(line));
  }

 private:
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(char wanted) {
    if (done() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string read_plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n\"", at_), text_.size());
    std::string cell(text_.substr(at_, end - at_));
    at_ = end;
    if (peek() == '"')
      fail("quote inside a plain cell", "quote the whole cell and double the quote");
    return cell;
  }

  std::string read_quoted() {
    const std::int64_t opened = line_;
    std::string cell;
    ++at_;
    while (true) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) fail_at(opened, "the quote opened here is never closed");
      const std::string_view piece = text_.substr(at_, quote - at_);
      cell += piece;
      line_ += std::count(piece.begin(), piece.end(), '\n');
      at_ = quote + 1;
      if (!take('"')) break;
      cell += '"';
    }
    if (!done() && peek() != ',' && peek() != '\r' && peek() != '\n') {
      fail("text after a closing quote", "double a quote that belongs to the cell");
    }
    return cell;
  }

  void end_row() {
    take('\r');
    if (!take('\n') && !done()) fail("a carriage return that ends no line");
    ++line_;
  }

  std::string_view text_;
  const std::string& place_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

bool is_blank(const CsvRow& row) { return row.cells.size() == 1 && row.cells[0].empty(); }

void check_text(std::string_view text, const std::string& place) {
  const auto line = [&](std::size_t offset) {
    return place + ":" + std::to_string(1 + std::count(text.begin(), text.begin() + offset, '\n'));
  };
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw InputError("a NUL byte", "this is no text file", "", line(nul));
  }
  if (const std::size_t valid = valid_utf8_length(text); valid < text.size()) {
    throw InputError("a byte that is not UTF-8", "", "", line(valid));
  }
}

std::vector<std::string> read_header(CsvReader& reader) {
  while (!reader.done()) {
    const CsvRow header = reader.read_row();
    if (is_blank(header)) continue;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < header.cells.size(); ++i) {
      const std::string& name = header.cells[i];
      if (name.empty()) {
        reader.fail_at(header.line, "column " + std::to_string(i + 1) + " has no name");
      }
      if (!seen.insert(name).second) {
        reader.fail_at(header.line, "column " + in_quotes(name) + " appears twice");
      }
    }
    return header.cells;
  }
  reader.fail_at(1, "no header", "name the columns in the first row");
}

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& place) {
  if (text.size() > kMaxCsvBytes) {
    throw InputError("the table is larger than " + std::to_string(kMaxCsvBytes >> 20) + " MiB", "",
                     "split it", place);
  }
  check_text(text, place);
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  CsvReader reader(text, place);
  CsvTable table{read_header(reader), {}};
  while (!reader.done()) {
    CsvRow row = reader.read_row();
    if (is_blank(row) && table.columns.size() > 1) continue;
    if (row.cells.size() != table.columns.size()) {
      reader.fail_at(row.line, "this row has " + std::to_string(row.cells.size()) +
                                   " cells, the header names " +
                                   std::to_string(table.columns.size()) + " columns");
    }
    if (table.rows.size() == kMaxCsvRows) {
      reader.fail_at(row.line, "more than " + std::to_string(kMaxCsvRows) + " rows", "split it");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace orrery

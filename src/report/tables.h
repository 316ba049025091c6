// Aligned tables for people.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "units/quantity.h"

namespace orrery {

/// How a report may look: colour only where a terminal shows it.
struct Style {
  bool colour = false;

  std::string bold(std::string_view text) const { return in("1", text); }
  std::string dim(std::string_view text) const { return in("2", text); }
  std::string red(std::string_view text) const { return in("31", text); }
  std::string green(std::string_view text) const { return in("32", text); }

 private:
  std::string in(std::string_view code, std::string_view text) const;
};

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
  std::string indent = "";
};

/// Cells are padded by what a terminal shows, so UTF-8 aligns. No trailing spaces.
void print_table(std::ostream& out, const Table& table, const Style& style = {});

/// `share` (0 to 1) of `width` cells, in eighths of a cell.
std::string bar(double share, int width = 24);

/// 1234567 as "1,234,567".
std::string grouped(double number);

/// "15 T", "1.5 B", "2.25 M"; below a million all digits.
std::string count_text(double number);

/// Three digits of kWh, MWh or GWh.
std::string energy_text(Joules energy);

/// Four digits, in seconds from one second on, so that steps can be compared.
std::string step_text(Seconds step);

/// 0.031 as "+3.1 %".
std::string percent_text(double signed_share);

/// Columns that a terminal needs for the text.
std::size_t display_width(std::string_view utf8);

}  // namespace orrery

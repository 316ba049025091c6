#include "report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "units/text.h"

namespace orrery {

std::string Style::in(std::string_view code, std::string_view text) const {
  if (!colour || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::size_t display_width(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

namespace {

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string space(width - display_width(text), ' ');
  return align == Align::left ? text + space : space + text;
}

}  // namespace

void print_table(std::ostream& out, const Table& table, const Style& style) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(display_width(column.title));
  for (const auto& row : table.rows) {
    EXPECT(row.size() == widths.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  const auto line = [&](auto cell) {
    std::string text;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += (i ? "  " : "") + padded(cell(i), widths[i], table.columns[i].align);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  const bool titled = std::any_of(table.columns.begin(), table.columns.end(),
                                  [](const Column& column) { return !column.title.empty(); });
  if (titled) {
    const auto title = [&](std::size_t i) { return table.columns[i].title; };
    out << table.indent << style.bold(line(title)) << '\n';
  }
  for (const auto& row : table.rows) {
    out << table.indent << line([&](std::size_t i) { return row[i]; }) << '\n';
  }
}

std::string bar(double share, int width) {
  static constexpr std::array<const char*, 8> parts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double safe = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto eighths = static_cast<std::size_t>(std::lround(safe * width * 8));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + parts[eighths % 8];
}

std::string step_text(Seconds step) {
  return step < Seconds(1) ? to_text(step) : fmt::format("{:.4g} s", step.value());
}

std::string percent_text(double signed_share) {
  return fmt::format("{:+.1f} %", 100 * signed_share);
}

std::string count_text(double number) {
  for (const auto& [scale, name] : {std::pair{1e12, "T"}, {1e9, "B"}, {1e6, "M"}}) {
    const double scaled = number / scale;
    if (scaled < 1) continue;
    return fmt::format("{} {}", scaled < 1000 ? fmt::format("{:.4g}", scaled) : grouped(scaled),
                       name);
  }
  return grouped(number);
}

std::string energy_text(Joules energy) {
  using namespace literals;
  const auto digits = [](double value) {
    return value < 100 ? fmt::format("{:.3g}", value) : grouped(value);
  };
  const double kwh = energy / 1_kWh;
  for (const auto& [scale, name] : {std::pair{1e6, "GWh"}, {1e3, "MWh"}}) {
    if (kwh >= scale) return digits(kwh / scale) + " " + name;
  }
  return kwh < 0.001 ? digits(1000 * kwh) + " Wh" : digits(kwh) + " kWh";
}

std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace orrery

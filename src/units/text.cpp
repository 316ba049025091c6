#include "units/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

struct Unit {
  std::string_view name;
  double scale;
  Dim dim;
};

constexpr Dim kTime{.time = 1};
constexpr Dim kRate{.time = -1};
constexpr Dim kData{.data = 1};
constexpr Dim kWork{.work = 1};
constexpr Dim kWorkRate{.time = -1, .work = 1};
constexpr Dim kEnergy{.energy = 1};
constexpr Dim kPower{.time = -1, .energy = 1};
constexpr Dim kMoney{.money = 1};
constexpr Dim kToken{.token = 1};

constexpr double kKi = 1024.0;

// Units that may be written alone or joined by "/". Case matters: Gb is a bit, GB a byte.
constexpr Unit kUnits[] = {
    {"ns", 1e-9, kTime},
    {"us", 1e-6, kTime},
    {"µs", 1e-6, kTime},
    {"ms", 1e-3, kTime},
    {"s", 1, kTime},
    {"min", 60, kTime},
    {"h", 3600, kTime},
    {"hour", 3600, kTime},
    {"hours", 3600, kTime},
    {"day", 86400, kTime},
    {"days", 86400, kTime},
    {"Hz", 1, kRate},
    {"kHz", 1e3, kRate},
    {"MHz", 1e6, kRate},
    {"GHz", 1e9, kRate},
    {"B", 1, kData},
    {"KB", 1e3, kData},
    {"kB", 1e3, kData},
    {"MB", 1e6, kData},
    {"GB", 1e9, kData},
    {"TB", 1e12, kData},
    {"PB", 1e15, kData},
    {"KiB", kKi, kData},
    {"MiB", kKi* kKi, kData},
    {"GiB", kKi* kKi* kKi, kData},
    {"TiB", kKi* kKi* kKi* kKi, kData},
    {"PiB", kKi* kKi* kKi* kKi* kKi, kData},
    {"b", 1 / 8.0, kData},
    {"Kb", 1e3 / 8, kData},
    {"Mb", 1e6 / 8, kData},
    {"Gb", 1e9 / 8, kData},
    {"Tb", 1e12 / 8, kData},
    {"FLOP", 1, kWork},
    {"KFLOP", 1e3, kWork},
    {"MFLOP", 1e6, kWork},
    {"GFLOP", 1e9, kWork},
    {"TFLOP", 1e12, kWork},
    {"PFLOP", 1e15, kWork},
    {"EFLOP", 1e18, kWork},
    {"ZFLOP", 1e21, kWork},
    {"YFLOP", 1e24, kWork},
    {"FLOPS", 1, kWorkRate},
    {"MFLOPS", 1e6, kWorkRate},
    {"GFLOPS", 1e9, kWorkRate},
    {"TFLOPS", 1e12, kWorkRate},
    {"PFLOPS", 1e15, kWorkRate},
    {"EFLOPS", 1e18, kWorkRate},
    {"GOPS", 1e9, kWorkRate},
    {"TOPS", 1e12, kWorkRate},
    {"POPS", 1e15, kWorkRate},
    {"pJ", 1e-12, kEnergy},
    {"nJ", 1e-9, kEnergy},
    {"uJ", 1e-6, kEnergy},
    {"mJ", 1e-3, kEnergy},
    {"J", 1, kEnergy},
    {"kJ", 1e3, kEnergy},
    {"MJ", 1e6, kEnergy},
    {"GJ", 1e9, kEnergy},
    {"Wh", 3600, kEnergy},
    {"kWh", 3.6e6, kEnergy},
    {"MWh", 3.6e9, kEnergy},
    {"GWh", 3.6e12, kEnergy},
    {"mW", 1e-3, kPower},
    {"W", 1, kPower},
    {"kW", 1e3, kPower},
    {"MW", 1e6, kPower},
    {"GW", 1e9, kPower},
    {"USD", 1, kMoney},
    {"K USD", 1e3, kMoney},
    {"M USD", 1e6, kMoney},
    {"B USD", 1e9, kMoney},
    {"$", 1, kMoney},
    {"token", 1, kToken},
    {"tokens", 1, kToken},
    {"K tokens", 1e3, kToken},
    {"M tokens", 1e6, kToken},
    {"B tokens", 1e9, kToken},
    {"T tokens", 1e12, kToken},
};

// The way common rates are written, where it is not "unit/unit".
struct Spelling {
  std::string_view written;
  std::string_view meant;
};
constexpr Spelling kSpellings[] = {
    {"KBps", "KB/s"},   {"MBps", "MB/s"},   {"GBps", "GB/s"},      {"TBps", "TB/s"},
    {"Kbps", "Kb/s"},   {"Mbps", "Mb/s"},   {"Gbps", "Gb/s"},      {"Tbps", "Tb/s"},
    {"Gbit/s", "Gb/s"}, {"Tbit/s", "Tb/s"}, {"tok/s", "tokens/s"}, {"FLOP/s", "FLOPS"},
};

// The units that quantity_text chooses from, smallest first.
struct Ladder {
  Dim dim;
  std::vector<std::string_view> units;
};
const std::vector<Ladder>& ladders() {
  static const std::vector<Ladder> all = {
      {kTime, {"ns", "us", "ms", "s", "min", "h", "days"}},
      {kRate, {"Hz", "kHz", "MHz", "GHz"}},
      {kData, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}},
      {kData + kRate, {"B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"}},
      {kWork, {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP", "YFLOP"}},
      {kWorkRate, {"FLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"}},
      {kWork - kData, {"FLOP/B"}},
      {kWork - kEnergy, {"FLOP/J", "MFLOP/J", "GFLOP/J", "TFLOP/J"}},
      {kEnergy, {"pJ", "nJ", "uJ", "mJ", "J", "kJ", "MJ", "kWh", "MWh", "GWh"}},
      {kPower, {"mW", "W", "kW", "MW", "GW"}},
      {kEnergy - kWork, {"pJ/FLOP", "nJ/FLOP", "uJ/FLOP", "mJ/FLOP", "J/FLOP"}},
      {kEnergy - kData, {"pJ/B", "nJ/B", "uJ/B", "mJ/B", "J/B"}},
      {kMoney, {"USD", "K USD", "M USD", "B USD"}},
      {kMoney - kTime, {"USD/h"}},
      {kMoney - kEnergy, {"USD/kWh"}},
      {kMoney - kToken, {"USD/M tokens"}},
      {kToken, {"tokens", "K tokens", "M tokens", "B tokens", "T tokens"}},
      {kToken - kTime, {"tokens/s", "K tokens/s", "M tokens/s", "B tokens/s"}},
      {kTime - kToken, {"ns/token", "us/token", "ms/token", "s/token"}},
      {kData - kToken, {"B/token", "KiB/token", "MiB/token", "GiB/token"}},
      {kWork - kToken, {"FLOP/token", "MFLOP/token", "GFLOP/token", "TFLOP/token"}},
      {kEnergy - kToken, {"mJ/token", "J/token", "kJ/token"}},
  };
  return all;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const Unit* find_unit(std::string_view name) {
  const auto found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& u) { return u.name == name; });
  return found == std::end(kUnits) ? nullptr : found;
}

// A unit or a ratio of units; scale 0 if it is unknown.
Unit resolve_unit(std::string_view text) {
  for (const auto& [written, meant] : kSpellings) {
    if (text == written) text = meant;
  }
  Unit result{text, 1, {}};
  bool numerator = true;
  while (true) {
    const std::size_t slash = text.find('/');
    const Unit* unit = find_unit(trimmed(text.substr(0, slash)));
    if (!unit) return {text, 0, {}};
    result.scale = numerator ? result.scale * unit->scale : result.scale / unit->scale;
    result.dim = numerator ? result.dim + unit->dim : result.dim - unit->dim;
    if (slash == std::string_view::npos) return result;
    text.remove_prefix(slash + 1);
    numerator = false;
  }
}

// Nothing is "0 s", not "0 ns".
std::string_view base_unit(const Ladder& ladder) {
  for (const std::string_view name : ladder.units) {
    if (resolve_unit(name).scale == 1) return name;
  }
  return ladder.units.front();
}

// Names of the units that a quantity of this dimension may be written in.
std::vector<std::string> valid_units(const Dim& dim) {
  std::vector<std::string> names;
  for (const Ladder& ladder : ladders()) {
    if (ladder.dim == dim) names.assign(ladder.units.begin(), ladder.units.end());
  }
  for (const Unit& unit : kUnits) {
    const bool listed = std::find(names.begin(), names.end(), unit.name) != names.end();
    if (unit.dim == dim && !listed) names.emplace_back(unit.name);
  }
  if (dim == kData + kRate) names.insert(names.end(), {"Gb/s", "Tb/s"});
  return names;
}

std::string units_hint(const Dim& dim) {
  const std::vector<std::string> names = valid_units(dim);
  return names.empty() ? "" : "valid units: " + join(names);
}

// Three significant digits, never an exponent for what people read: "0.123", "45.6", "1234".
std::string three_digits(double value) {
  std::array<char, 64> buffer;
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e6);
  const auto end =
      plain && size >= 100
          ? std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed, 0)
          : std::to_chars(buffer.begin(), buffer.end(), value,
                          plain ? std::chars_format::general : std::chars_format::scientific,
                          plain ? 3 : 2);
  return std::string(buffer.data(), end.ptr);
}

double rounded(double value) {
  const double size = std::abs(value);
  if (size == 0 || size >= 100) return std::round(value);
  const double step = std::pow(10.0, std::floor(std::log10(size)) - 2);
  return std::round(value / step) * step;
}

}  // namespace

double parse_quantity(std::string_view text, const Dim& dim, const std::string& place) {
  const std::string_view whole = trimmed(text);
  double number = 0;
  const char* end = whole.data() + whole.size();
  const auto [rest, error] = std::from_chars(whole.data(), end, number);
  const std::string got = "got " + in_quotes(text);
  if (error == std::errc::result_out_of_range || (error == std::errc() && !std::isfinite(number))) {
    throw InputError("the number is out of range", got, "", place);
  }
  if (error != std::errc()) {
    throw InputError("expected a number with a unit", got, units_hint(dim), place);
  }
  if (number < 0) throw InputError("a quantity must not be negative", got, "", place);
  const std::string_view unit_text = trimmed({rest, static_cast<std::size_t>(end - rest)});
  if (unit_text.empty()) throw InputError("the unit is missing", got, units_hint(dim), place);
  const Unit unit = resolve_unit(unit_text);
  if (unit.scale == 0) {
    throw InputError("unknown unit " + in_quotes(unit_text), got, units_hint(dim), place);
  }
  if (unit.dim != dim) {
    throw InputError(in_quotes(unit_text) + " is a unit of something else", got, units_hint(dim),
                     place);
  }
  const double value = number * unit.scale;
  if (!std::isfinite(value)) throw InputError("the number is out of range", got, "", place);
  return value;
}

std::string quantity_text(double base_value, const Dim& dim) {
  for (const Ladder& ladder : ladders()) {
    if (ladder.dim != dim) continue;
    std::string_view chosen = ladder.units.front();
    if (base_value == 0) return "0 " + std::string(base_unit(ladder));
    for (const std::string_view name : ladder.units) {
      // Rounded first, so that 999.9 ms is shown as 1 s and not as 1000 ms.
      if (std::abs(rounded(base_value / resolve_unit(name).scale)) >= 1) chosen = name;
    }
    return three_digits(base_value / resolve_unit(chosen).scale) + " " + std::string(chosen);
  }
  return three_digits(base_value) + " (base units)";
}

}  // namespace orrery

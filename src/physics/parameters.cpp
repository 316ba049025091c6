#include "physics/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "units/text.h"

namespace orrery {
namespace {

struct Unit {
  Dim dim;
  double scale;
  std::string_view name;
};
constexpr Unit units[] = {
    {Seconds::dim, 1e-6, "us"},
    {Bytes::dim, 1e6, "MB"},
    {BytesPerSecond::dim, 1e9, "GB/s"},
    {FlopPerSecond::dim, 1e12, "TFLOP/s"},
};

}  // namespace

Json parameter_json(double base_value, const Dim& dim) {
  if (dim == Dim{}) return Json(std::stod(fmt::format("{:.4g}", base_value)));
  const auto unit = std::ranges::find(units, dim, &Unit::dim);
  EXPECT(unit != std::end(units));
  return Json(fmt::format("{:.4g} {}", base_value / unit->scale, unit->name));
}

double parameter_value(const Json& json, const Dim& dim, const std::string& place) {
  if (dim == Dim{}) {
    if (!json.is_number() || !std::isfinite(json.as_double()) || json.as_double() < 0) {
      throw InputError("expected a number of at least 0", "", "", place);
    }
    return json.as_double();
  }
  if (!json.is_string()) throw InputError("expected a quantity with a unit", "", "", place);
  return parse_quantity(json.as_string(), dim, place);
}

namespace detail {

void fail_missing_parameter(const KernelSet& set, std::string_view name) {
  throw InputError("set " + in_quotes(set.variant) + ": parameter " + in_quotes(name) + " missing",
                   "", "", set.place);
}

void check_names(const KernelSet& set, const std::vector<std::string_view>& names) {
  for (const auto& [name, value] : set.values) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw InputError("set " + in_quotes(set.variant) + ": unknown parameter " + in_quotes(name), "",
                     "", set.place);
  }
}

}  // namespace detail
}  // namespace orrery

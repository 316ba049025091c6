// Quantities as people write them: "3.35 TB/s" in, "1.23 s" out.
#pragma once

#include <string>
#include <string_view>

#include "core/fields.h"
#include "units/quantity.h"

namespace orrery {

/// A number and a unit, or units joined by "/": "700 W", "400 Gb/s", "2.5 USD/h", "80GiB".
/// In base units. InputError for a missing or unknown unit, another dimension, a negative number.
double parse_quantity(std::string_view text, const Dim& dim, const std::string& place);

/// Three significant digits in the unit that fits.
std::string quantity_text(double base_value, const Dim& dim);

template <class Q>
Q parse(std::string_view text, const std::string& place = "") {
  return Q(parse_quantity(text, Q::dim, place));
}

template <Dim D>
std::string to_text(Quantity<D> quantity) {
  return quantity_text(quantity.value(), D);
}

/// Quantities in files are strings with a unit: `fields.required<Bytes>("capacity")`.
template <Dim D>
struct FieldReader<Quantity<D>> {
  static Quantity<D> read(const Json& json, const FieldPlace& where) {
    if (!json.is_string()) where.fail_expected("a quantity with a unit, as text", json);
    return parse<Quantity<D>>(json.as_string(), where.text());
  }
};

}  // namespace orrery

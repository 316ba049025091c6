// Parameters of a kernel model as data: what a fit varies and a catalog file holds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "catalog/kernel_sets.h"
#include "units/quantity.h"

namespace orrery {

/// Name and limits in base units. A fit moves a parameter in log space between `low` and `high`,
/// both above zero, from `start`.
struct ParameterInfo {
  std::string_view name;
  double low, high, start;
  std::string_view meaning;
};

/// One member of a struct of parameters. `struct GemmParameters` lists its own as
/// `static std::span<const Parameter<GemmParameters>> parameters();`
template <class P>
struct Parameter {
  using Member =
      std::variant<double P::*, Seconds P::*, Bytes P::*, BytesPerSecond P::*, FlopPerSecond P::*>;
  ParameterInfo info;
  Member member;
};

/// A quantity with four significant digits in a unit for people ("2.613 us"), or a number; and
/// back. InputError at `place` for another dimension.
Json parameter_json(double base_value, const Dim& dim);
double parameter_value(const Json& json, const Dim& dim, const std::string& place);

namespace detail {
template <class T>
inline constexpr Dim dim_of = T::dim;
template <>
inline constexpr Dim dim_of<double> = Dim{};

inline double base(double value) { return value; }
template <Dim D>
double base(Quantity<D> value) {
  return value.value();
}

[[noreturn]] void fail_missing_parameter(const KernelSet& set, std::string_view name);
void check_names(const KernelSet& set, const std::vector<std::string_view>& names);
}  // namespace detail

/// Values in the order of P::parameters(), in base units.
template <class P>
P parameters_from(std::span<const double> values) {
  P set;
  std::size_t i = 0;
  for (const Parameter<P>& parameter : P::parameters()) {
    const double value = values[i++];
    std::visit([&]<class T>(T P::*member) { set.*member = T(value); }, parameter.member);
  }
  return set;
}

template <class P>
std::vector<double> values_of(const P& set) {
  std::vector<double> values;
  for (const Parameter<P>& parameter : P::parameters()) {
    std::visit([&]<class T>(T P::*member) { values.push_back(detail::base(set.*member)); },
               parameter.member);
  }
  return values;
}

/// Of a catalog set. InputError at its file for a parameter that is missing or unknown.
template <class P>
P parameters_from(const KernelSet& set) {
  P parameters;
  std::vector<std::string_view> names;
  for (const Parameter<P>& parameter : P::parameters()) {
    const auto found = set.values.find(parameter.info.name);
    if (found == set.values.end()) detail::fail_missing_parameter(set, parameter.info.name);
    names.push_back(parameter.info.name);
    const std::string place = set.place + ": " + std::string(parameter.info.name);
    std::visit(
        [&]<class T>(T P::*member) {
          parameters.*member = T(parameter_value(found->second, detail::dim_of<T>, place));
        },
        parameter.member);
  }
  detail::check_names(set, names);
  return parameters;
}

/// Into a catalog set, as parameter_json writes them.
template <class P>
void write_parameters(const P& parameters, KernelSet& set) {
  for (const Parameter<P>& parameter : P::parameters()) {
    std::visit(
        [&]<class T>(T P::*member) {
          set.values[std::string(parameter.info.name)] =
              parameter_json(detail::base(parameters.*member), detail::dim_of<T>);
        },
        parameter.member);
  }
}

}  // namespace orrery

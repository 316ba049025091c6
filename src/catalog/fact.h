// A number with a past: how it is known, where it was read, or that it is not known.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/fields.h"

namespace orrery {

enum class Evidence { datasheet, measured, derived, fitted, assumed, unknown };

std::string_view to_text(Evidence evidence);

/// What `Fact` keeps beside its value; `place` is where it stands: "h100-sxm.json: power.idle".
struct Provenance {
  Evidence evidence = Evidence::unknown;
  std::string source;  ///< a key of the entry's sources; empty when unknown
  std::string note;
  std::string place;
};

/// InputError: "PLACE: the value is unknown (NOTE)".
[[noreturn]] void fail_unknown(const Provenance& provenance);

template <class T>
class Fact {
 public:
  Fact() = default;  ///< unknown
  Fact(T value, Provenance provenance)
      : value_(std::move(value)), provenance_(std::move(provenance)) {}
  explicit Fact(Provenance unknown) : provenance_(std::move(unknown)) {}

  bool known() const { return value_.has_value(); }
  /// InputError, with the note, when it is unknown.
  const T& value() const {
    if (!value_) fail_unknown(provenance_);
    return *value_;
  }
  T value_or(T fallback) const { return value_.value_or(std::move(fallback)); }

  const Provenance& provenance() const { return provenance_; }

 private:
  std::optional<T> value_;
  Provenance provenance_;
};

/// Reads everything of a fact but its value, and checks that a null value is said to be unknown
/// and that any other has evidence and a source.
Provenance read_provenance(Fields& fields, bool has_value);

template <class T>
struct FieldReader<Fact<T>> {
  static Fact<T> read(const Json& json, const FieldPlace& where) {
    Fields fields(json, where.place, where.path);
    if (!fields.has("value")) fields.fail("value", "missing");
    const std::optional<T> value = fields.optional<T>("value");
    Provenance provenance = read_provenance(fields, value.has_value());
    fields.finish();
    return value ? Fact<T>(*value, std::move(provenance)) : Fact<T>(std::move(provenance));
  }
};

}  // namespace orrery

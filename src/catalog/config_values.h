// Values of a config.json whose absent keys mean what the family's own code says.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/architecture.h"
#include "core/fields.h"
#include "core/json.h"

namespace orrery {

/// Every fallback that is used is added to `defaults`: "vision_config.hidden_size = 768
/// (clip_vision_model)". Each read throws InputError for a wrong type or a value out of range.
class ConfigValues {
 public:
  using Keys = std::initializer_list<std::string_view>;

  /// Keeps references to the Json behind `fields` and to `defaults`.
  ConfigValues(Fields fields, std::string family, std::vector<std::string>& defaults)
      : fields_(std::move(fields)), family_(std::move(family)), defaults_(&defaults) {}

  /// Numbers under whichever of the names in `keys` is used, each within what a model can have.
  std::int64_t layers(Keys keys, std::int64_t fallback);
  std::int64_t width(Keys keys, std::int64_t fallback);
  std::int64_t rows(Keys keys, std::int64_t fallback);  // of a table: words, positions
  std::int64_t small(Keys keys, std::int64_t fallback, std::int64_t least = 1);  // a patch's side
  double ratio(std::string_view key, double fallback);

  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, const std::string& fallback);
  /// What a feed-forward without gate applies, or what a gated one gates with.
  Activation activation(std::string_view key, const std::string& fallback, bool gated = false);
  Activation activation_named(std::string_view key, const std::string& name, bool gated) const;

  /// The object under `key`, as `family` reads it; empty if absent, so all is default.
  ConfigValues nested(std::string_view key, std::string family);
  std::string family_under(std::string_view key, const std::string& fallback);

  /// One of `architectures` has `task` in its name: "ForImageClassification".
  bool is_built_for(std::string_view task);

  void note(const std::string& what);
  Fields& fields() { return fields_; }
  const std::string& family() const { return family_; }
  std::vector<std::string>& defaults() { return *defaults_; }

 private:
  std::int64_t integer(Keys keys, std::int64_t fallback, std::int64_t least, std::int64_t most);
  void note_default(std::string_view key, const std::string& value);

  Fields fields_;
  std::string family_;
  std::vector<std::string>* defaults_;
};

/// The width of a head; InputError if `heads` do not divide `hidden`.
std::int64_t head_width(ConfigValues& values, std::string_view key, std::int64_t hidden,
                        std::int64_t heads);

/// A stack that sees all its tokens, with layer norms, biases everywhere and no head.
Architecture encoder_stack(const std::string& family);

/// Shape of a stack: the family's default, or what the keys say that most encoders use.
struct StackShape {
  std::int64_t layers, hidden, heads, ffn;
};
void read_stack_shape(Architecture& stack, ConfigValues& values, const StackShape& fallback);

/// InputError at `place` for a model, with its towers, of more than 1e18 weights, which no count
/// could hold.
void refuse_too_many_weights(const Architecture& architecture, const std::string& place);

}  // namespace orrery

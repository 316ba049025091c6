// Any text is refused with an InputError or is a value that JSON can hold.
#include <cstdint>

#include "core/error.h"
#include "core/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  orrery::Json json;
  try {
    json = orrery::parse_yaml(text, "fuzz");
  } catch (const orrery::InputError&) {
    return 0;
  }
  ENSURE(orrery::parse_json(json.dump(), "dump") == json);
  return 0;
}

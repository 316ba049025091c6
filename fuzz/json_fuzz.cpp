// Any text is refused with an InputError or comes back from its own dump unchanged.
#include <cstdint>

#include "core/error.h"
#include "core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  orrery::Json json;
  try {
    json = orrery::parse_json(text, "fuzz");
  } catch (const orrery::InputError&) {
    return 0;
  }
  ENSURE(orrery::parse_json(json.dump(), "dump") == json);
  ENSURE(orrery::parse_json(json.dump(2), "dump") == json);
  return 0;
}

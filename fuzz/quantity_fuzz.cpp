// Any text is refused with an InputError or is a finite amount that can be written again.
#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "units/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  orrery::BytesPerSecond rate;
  try {
    rate = orrery::parse<orrery::BytesPerSecond>(text);
  } catch (const orrery::InputError&) {
    return 0;
  }
  ENSURE(std::isfinite(rate.value()) && rate.value() >= 0);
  const std::string written = orrery::to_text(rate);
  const double again = orrery::parse<orrery::BytesPerSecond>(written).value();
  ENSURE(std::abs(again - rate.value()) <= 0.006 * rate.value());
  return 0;
}

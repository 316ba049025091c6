// Any text is refused with an InputError by each reader of the catalog, or is an entry.
#include <cstdint>

#include "catalog/catalog.h"
#include "core/error.h"
#include "twin/evidence.h"

namespace {

using namespace orrery;

template <class Read>
void attempt(Read read) {
  try {
    read();
  } catch (const InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json json;
  try {
    json = parse_json(text, "fuzz");
  } catch (const InputError&) {
    return 0;
  }
  attempt([&] {
    const Gpu gpu = gpu_from_json(json, "fuzz");
    for (const Precision precision : all_precisions) {
      if (const auto peak = gpu.peak(precision)) ENSURE(*peak > FlopPerSecond());
    }
  });
  attempt([&] { ENSURE(node_from_json(json, "fuzz").gpus.value() >= 1); });
  attempt([&] { ENSURE(fabric_from_json(json, "fuzz").per_gpu(8) > BytesPerSecond()); });
  attempt([&] { power_set_from_json(json, "fuzz"); });
  attempt([&] { framework_from_json(json, "fuzz"); });
  attempt([&] { kernel_rates_from_json(json, "fuzz"); });
  attempt([&] {
    const EvidenceTable table = evidence_from_json(json, "fuzz");
    ENSURE(to_json(evidence_from_json(to_json(table), "again")) == to_json(table));
  });
  return 0;
}

// Any configuration is refused with an InputError or is a model with a countable size.
#include <cmath>
#include <cstdint>

#include "catalog/architecture_from_config.h"
#include "core/error.h"
#include "model/build.h"
#include "model/count.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Architecture model;
  try {
    model = architecture_from_config(parse_json(text, "fuzz"), "fuzz");
  } catch (const InputError&) {
    return 0;
  }
  const ParameterCount count = parameters(model);
  ENSURE(count.total() > 0 && count.active() > 0 && count.active() <= count.total());
  ENSURE(flop_per_token(model, 4096, FlopConvention::full_attention) > Flop());
  if (!unlowered(model).empty()) return 0;
  const OpGraph graph = training_graph(model, {.micro_batch = 1, .seq_len = 4096});
  ENSURE(graph.depth() == model.layers);
  return 0;
}

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
  ENSURE(model.heads % model.kv_heads == 0);
  ENSURE(parameters(model).total() > 0);
  ENSURE(flop_per_token(model, 4096, FlopConvention::full_attention) > Flop());
  const OpGraph graph = training_graph(model, {.micro_batch = 1, .seq_len = 4096});
  ENSURE(graph.decoders == model.layers);
  return 0;
}

// Any table is refused with an InputError, or each of its rows is skipped with a reason or is a
// question that the door understands.
#include <cstdint>

#include "core/error.h"
#include "validate/express.h"

namespace {

using namespace orrery;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

void read_table(std::string_view text) {
  for (const Measurement& row : measurements_from_csv(text, "fuzz")) {
    const auto outcome = express(row);
    if (const Skip* skip = std::get_if<Skip>(&outcome)) {
      ENSURE(!skip->reason.empty());
      continue;
    }
    const Expressed& expressed = std::get<Expressed>(outcome);
    try {
      const Scenario scenario = resolve(expressed.request, catalog());
      ENSURE(scenario.cluster.gpus == row.gpus && scenario.strategy.seq_len == row.seq_len);
    } catch (const InputError&) {  // a GPU that the catalog does not have, for one
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string rows(reinterpret_cast<const char*>(data), size);
  // As it is, and as rows under a header that is right.
  const char* header =
      "id,gpu,gpus,gpus_per_node,framework,model,layers,hidden,heads,kv_heads,ffn_hidden,mlp,vocab,"
      "seq_len,global_batch_seqs,micro_batch,precision,tp,pp,vpp,cp,zero_stage,recompute,other,"
      "tokens_per_s_per_gpu\n";
  for (const std::string& text : {rows, header + rows}) {
    try {
      read_table(text);
    } catch (const InputError&) {
    }
  }
  return 0;
}

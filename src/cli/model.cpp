#include "report/model.h"

#include <algorithm>
#include <sstream>

#include "catalog/named_model.h"
#include "cli/command.h"
#include "core/error.h"
#include "core/text.h"
#include "twin/asked.h"

namespace orrery::cli {

namespace {

constexpr std::int64_t usual_seq_len = 4096;
constexpr std::int64_t longest_seq_len = 1 << 24;

std::int64_t seq_len(const Command& command, const Architecture& model) {
  const Asked given(command.request, "seq-len");
  if (given) return given.whole(1, longest_seq_len);
  return model.max_positions > 0 ? std::min(usual_seq_len, model.max_positions) : usual_seq_len;
}

}  // namespace

Reply model_verb(const Command& command) {
  if (command.arguments.size() != 1) {
    throw InputError(command.arguments.empty()
                         ? "no model is given"
                         : "unexpected argument " + in_quotes(command.arguments[1]),
                     "", "usage: orrery model NAME|PATH");
  }
  const Architecture model =
      named_model(Catalog::load(default_data_dir()), command.arguments.front());
  const std::int64_t tokens = seq_len(command, model);
  if (command.json) return {answered, model_json(model, tokens).dump(2) + "\n"};
  std::ostringstream out;
  print_model(out, model, tokens, command.style);
  return {answered, out.str()};
}

}  // namespace orrery::cli

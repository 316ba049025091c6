#include <sstream>

#include "cli/command.h"
#include "report/answer.h"
#include "twin/autopsy.h"

namespace orrery::cli {

Reply predict_verb(const Command& command) {
  const std::string data = default_data_dir();
  const Scenario scenario = resolve(command.request, Catalog::load(data));
  Answer answer = predict(scenario, load_evidence(data));
  if (command.explain && answer.priced) answer.autopsy = autopsy(scenario, answer);
  const ExitCode code = answer.feasible ? answered : infeasible;
  if (command.json) {
    Json json = to_json(scenario, answer);
    if (command.explain) json.set("kernels", kernels_json(answer));
    return {code, json.dump(2) + "\n"};
  }
  std::ostringstream out;
  print_answer(out, scenario, answer, command.style);
  if (command.explain) explain_answer(out, scenario, answer, command.style);
  return {code, out.str()};
}

}  // namespace orrery::cli

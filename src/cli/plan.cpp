#include "report/plan.h"

#include <chrono>
#include <cstdio>
#include <sstream>

#include "cli/command.h"
#include "core/error.h"
#include "report/answer.h"
#include "search/search.h"

namespace orrery::cli {
namespace {

using Clock = std::chrono::steady_clock;

Seconds since(Clock::time_point start) {
  return Seconds(std::chrono::duration<double>(Clock::now() - start).count());
}

// One line on a terminal, once the search has taken two seconds.
class Progress {
 public:
  explicit Progress(Clock::time_point start) : start_(start) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

  void operator()(std::size_t done, std::size_t all) {
    if (since(start_) < Seconds(2)) return;
    shown_ = true;
    std::fprintf(stderr, "\rorrery: %zu of %zu divisions looked at", done, all);
  }

 private:
  Clock::time_point start_;
  bool shown_ = false;
};

}  // namespace

Reply plan_verb(const Command& command) {
  const Clock::time_point start = Clock::now();
  const std::string data = default_data_dir();
  const Scenario scenario = resolve(command.request, Catalog::load(data));
  if (!command.request.values.contains("gpus")) {
    throw InputError("no number of GPUs is given", "", "add --gpus N, such as --gpus 64",
                     command.request.place);
  }
  const Space space = space_of(command.request, scenario);
  SearchOptions options;
  Progress progress(start);
  if (command.show_progress) {
    options.progress = [&](std::size_t done, std::size_t all) { progress(done, all); };
  }
  const Found found = search(scenario, space, load_evidence(data), options);
  const ExitCode code = found.best.empty() ? infeasible : answered;
  if (command.json) return {code, to_json(found, since(start)).dump(2) + "\n"};
  std::ostringstream out;
  print_plan(out, found, command.style);
  if (command.explain) {
    for (const Candidate& candidate : found.best) {
      if (&candidate != &found.best.front()) {
        out << '\n';
        print_answer(out, candidate.scenario, candidate.answer, command.style);
      }
      explain_answer(out, candidate.scenario, candidate.answer, command.style);
    }
  }
  return {code, out.str()};
}

}  // namespace orrery::cli

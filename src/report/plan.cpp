#include "report/plan.h"

#include <fmt/format.h>

#include "report/answer.h"

namespace orrery {
namespace {

using namespace literals;

// Plans that need more of the card than this are marked.
constexpr double tight = 0.92;
constexpr const char* memory_error = "6 %";  // median of the peaks that `validate` compares

// "78.1 !" where little is left, "68.9" with as much room where not.
std::string memory_text(const Answer& answer) {
  return fmt::format("{:.1f}{}", answer.needed() / 1_GiB,
                     answer.needed() > tight * answer.capacity ? " !" : "  ");
}

// What the columns mean and what the mark does, below the table.
std::string legend(const Answer& answer) {
  return fmt::format(
      "  vpp: chunks of layers a stage; cp: GPUs that share a sequence; zero: what dp divides (0 "
      "nothing, 1 optimizer, 2 + gradients, 3 + weights)\n"
      "  ! over {:.0f} % of the {:.1f} GiB that a card has; measured peaks are off by {} in the "
      "median",
      100 * tight, answer.capacity / 1_GiB, memory_error);
}

std::string recompute_text(const Strategy& s) {
  if (s.recompute == Recompute::none || s.recompute_share >= 1) {
    return std::string(name_of(s.recompute));
  }
  return fmt::format("{} {:.0f} %", name_of(s.recompute), 100 * s.recompute_share);
}

Table plan_table(const Found& found) {
  Table table{.columns = {{"", Align::right},
                          {"tp", Align::right},
                          {"pp", Align::right},
                          {"vpp", Align::right},
                          {"cp", Align::right},
                          {"dp", Align::right},
                          {"micro-batch", Align::right},
                          {"zero", Align::right},
                          {"recompute"},
                          {"step", Align::right},
                          {"tokens/s/GPU", Align::right},
                          {"MFU", Align::right},
                          {"GiB  ", Align::right},
                          {"why not first"}},
              .rows = {},
              .indent = "  "};
  const bool experts = !found.best.empty() && found.best.front().scenario.model.experts.count > 0;
  constexpr std::ptrdiff_t after_cp = 5;
  if (experts) table.columns.insert(table.columns.begin() + after_cp, {"ep", Align::right});
  int place = 0;
  for (const Candidate& candidate : found.best) {
    const Strategy& s = candidate.scenario.strategy;
    const Answer& a = candidate.answer;
    table.rows.push_back({std::to_string(++place), std::to_string(s.tp), std::to_string(s.pp),
                          std::to_string(s.vpp), std::to_string(s.cp), std::to_string(s.dp),
                          std::to_string(s.micro_batch), std::to_string(static_cast<int>(s.zero)),
                          recompute_text(s), step_text(a.step), grouped(a.tokens_per_s_per_gpu),
                          fmt::format("{:.1f} %", 100 * a.mfu), memory_text(a), candidate.lost});
    if (experts) {
      auto& row = table.rows.back();
      row.insert(row.begin() + after_cp, std::to_string(s.ep));
    }
  }
  return table;
}

}  // namespace

void print_plan(std::ostream& out, const Found& found, const Style& style) {
  out << fmt::format("{} strategies", grouped(static_cast<double>(found.searched)));
  std::string separator = ": ";
  for (const auto& [reason, count] : found.pruned) {
    out << separator << grouped(static_cast<double>(count)) << " not priced (" << reason << ")";
    separator = ", ";
  }
  out << "\n\n";
  if (found.best.empty()) {
    out << style.red("infeasible  ")
        << (found.nearest_miss
                ? "nothing fits; nearest: " + strategy_text(found.nearest_miss->scenario.strategy) +
                      ": " + found.nearest_miss->answer.reason
                : "no division of these GPUs keeps the rules")
        << '\n';
    return;
  }
  print_table(out, plan_table(found), style);
  out << '\n' << style.dim(legend(found.best.front().answer)) << '\n';
  out << '\n' << style.bold("The first of them:") << "\n\n";
  print_answer(out, found.best.front().scenario, found.best.front().answer, style);
}

Json to_json(const Found& found, Seconds taken) {
  Json candidates = Json::array();
  for (const Candidate& candidate : found.best) {
    Json json = to_json(candidate.scenario, candidate.answer);
    json.set("lost", candidate.lost.empty() ? Json() : Json(candidate.lost));
    candidates.push_back(std::move(json));
  }
  Json pruned = Json::object();
  for (const auto& [reason, count] : found.pruned) pruned.set(reason, count);
  const bool feasible = !found.best.empty();
  Json json = Json::object({{"schema_version", 1},
                            {"feasible", feasible},
                            {"reason", nullptr},
                            {"candidates", std::move(candidates)},
                            {"searched", found.searched},
                            {"pruned", std::move(pruned)},
                            {"seconds", taken.value()}});
  if (!feasible) {
    json.set("reason", found.nearest_miss
                           ? "nothing fits; the nearest " + found.nearest_miss->answer.reason
                           : "no division of these GPUs keeps the rules");
    if (found.nearest_miss) {
      json.set("nearest", to_json(found.nearest_miss->scenario, found.nearest_miss->answer));
    }
  }
  return json;
}

}  // namespace orrery

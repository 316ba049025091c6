#include "report/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/count.h"
#include "units/text.h"

namespace orrery {
namespace {

using namespace literals;

constexpr std::size_t longest_kernels = 12;

std::string gib(Bytes bytes) { return fmt::format("{:.1f} GiB", bytes / 1_GiB); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string usd(Dollars money) {
  const double value = money.value();
  if (value >= 100) return grouped(value) + " USD";
  return fmt::format("{:.{}f} USD", value, value >= 0.1 ? 2 : 4);
}

std::string duration(Seconds time) {
  if (time >= 24'000_h) return grouped(time / 24_h) + " days";
  if (time >= 48_h) return fmt::format("{:.1f} days", time / 24_h);
  if (time >= 2_h) return fmt::format("{:.1f} hours", time / 1_h);
  return to_text(time);
}

std::string machine_text(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  std::string text = fmt::format("{} x {}", cluster.gpus, cluster.gpu.name);
  if (scenario.power_cap) text += fmt::format(" at {:.0f} W", scenario.power_cap->value());
  text += fmt::format(" ({} in each {}", cluster.gpus_per_node, cluster.node.name);
  if (cluster.nodes() > 1 && cluster.fabric) text += ", " + cluster.fabric->name;
  return text + ")";
}

std::string evidence_text(const TrackRecord& record) {
  if (record.n == 0) return "no published run like it was compared";
  return fmt::format("median error {} over {} published runs of {}{}",
                     percent(record.median_abs_error), record.n, record.group,
                     record.extrapolated ? ", none near" : "");
}

void print_warnings(std::ostream& out, const Answer& answer, const Style& style) {
  for (const std::string& warning : answer.warnings) {
    out << style.bold("  warning  ") << warning << '\n';
  }
}

using Rows = std::vector<std::vector<std::string>>;

void add_run(const Scenario& scenario, const Answer& answer, Rows& rows) {
  if (!answer.run_time) return;
  const double steps = *answer.run_time / answer.step;
  std::string text =
      fmt::format("{} for {} tokens, {}", duration(*answer.run_time),
                  count_text(scenario.tokens->value()), energy_text(steps * answer.step_energy));
  if (answer.run_cost) text += ", " + usd(*answer.run_cost);
  rows.push_back({"whole run", text});
}

Table summary(const Scenario& scenario, const Answer& answer) {
  Table table{.columns = {{""}, {""}}, .rows = {}, .indent = "  "};
  table.rows = {
      {"step time",
       fmt::format("{}  ({} to {}; {})", step_text(answer.step), step_text(answer.band.low),
                   step_text(answer.band.high), evidence_text(answer.evidence))},
      {"throughput", fmt::format("{} tokens/s, {} a GPU", grouped(answer.tokens_per_s),
                                 grouped(answer.tokens_per_s_per_gpu))},
      {"model FLOPs", fmt::format("{:.0f} TFLOP/s a GPU: MFU {}, HFU {} of {:.0f} ({}, {})",
                                  answer.model_flops_per_gpu / 1e12, percent(answer.mfu),
                                  percent(answer.hfu), answer.peak.value() / 1e12,
                                  to_text(scenario.precision), name_of(scenario.convention))},
      {"memory", fmt::format("{} of {} on {}", gib(answer.needed()), gib(answer.capacity),
                             answer.classes[answer.memory.at])},
      {"power", fmt::format("{:.0f} W a GPU, {} a step", answer.gpu_power.value(),
                            energy_text(answer.step_energy))}};
  if (answer.step_cost) {
    table.rows.push_back(
        {"cost", fmt::format("{} a step, {} a million tokens", usd(*answer.step_cost),
                             usd(*answer.cost_per_million_tokens))});
  }
  add_run(scenario, answer, table.rows);
  return table;
}

Table time_table(const Answer& answer) {
  Table table{.columns = {{"time"}, {"", Align::right}, {"", Align::right}, {""}},
              .rows = {},
              .indent = "  "};
  const Breakdown& time = answer.time;
  const std::initializer_list<std::pair<const char*, Seconds>> terms = {
      {"compute", time.compute},
      {"exposed communication", time.exposed_comm},
      {"pipeline bubble", time.bubble},
      {"optimizer", time.optimizer},
      {"overhead", time.overhead}};
  for (const auto& [name, taken] : terms) {
    const double share = taken / answer.step;
    table.rows.push_back({name, step_text(taken), percent(share), bar(share)});
  }
  return table;
}

Table memory_table(const Answer& answer) {
  Table table{.columns = {{"memory"}, {"", Align::right}, {"", Align::right}, {""}},
              .rows = {},
              .indent = "  "};
  for (std::size_t i = 0; i < memory_terms; ++i) {
    const Bytes held = answer.memory.footprint[i];
    const double share = held / answer.capacity;
    table.rows.push_back(
        {std::string(name_of(static_cast<MemoryTerm>(i))), gib(held), percent(share), bar(share)});
  }
  return table;
}

Table stage_table(const Answer& answer) {
  Table table{.columns = {{"memory by stage, GiB"}}, .rows = {}, .indent = "  "};
  for (std::size_t i = 0; i < memory_terms; ++i) {
    table.columns.push_back({std::string(name_of(static_cast<MemoryTerm>(i))), Align::right});
  }
  table.columns.push_back({"in all", Align::right});
  for (const ClassId id : answer.memory.by_class.ids()) {
    const Footprint& footprint = answer.memory.by_class[id];
    std::vector<std::string> row = {answer.classes[id]};
    for (const Bytes held : footprint) row.push_back(fmt::format("{:.2f}", held / 1_GiB));
    row.push_back(fmt::format("{:.2f}", total(footprint) / 1_GiB));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table kernel_table(const Answer& answer) {
  Table table{.columns = {{"longest kernels"},
                          {"launches", Align::right},
                          {"each", Align::right},
                          {"a step", Align::right},
                          {"of step", Align::right}},
              .rows = {},
              .indent = "  "};
  for (std::size_t i = 0; i < std::min(longest_kernels, answer.kernels.size()); ++i) {
    const KernelShare& kernel = answer.kernels[i];
    table.rows.push_back({kernel.name, grouped(static_cast<double>(kernel.launches)),
                          to_text(kernel.time / static_cast<double>(kernel.launches)),
                          to_text(kernel.time), percent(kernel.time / answer.step)});
  }
  return table;
}

}  // namespace

std::string strategy_text(const Strategy& s) {
  std::string text = fmt::format("tp {}  pp {}  dp {}", s.tp, s.pp, s.dp);
  if (s.cp > 1) text += fmt::format("  cp {}", s.cp);
  if (s.vpp > 1) text += fmt::format("  vpp {}", s.vpp);
  text += fmt::format("  micro-batch {}  zero {}  recompute {}", s.micro_batch,
                      static_cast<int>(s.zero), name_of(s.recompute));
  if (s.recompute != Recompute::none && s.recompute_share < 1) {
    text += fmt::format(" ({:.0f} % of layers)", 100 * s.recompute_share);
  }
  if (s.sequence_parallel) text += "  sequence-parallel";
  return text;
}

void print_answer(std::ostream& out, const Scenario& scenario, const Answer& answer,
                  const Style& style) {
  const Strategy& s = scenario.strategy;
  out << style.bold(scenario.model.name)
      << fmt::format(" ({:.2f} B parameters) on {}\n",
                     static_cast<double>(parameters(scenario.model).total()) / 1e9,
                     machine_text(scenario))
      << fmt::format("  {}, {}, {} sequences of {} tokens a step\n", scenario.framework.name,
                     to_text(scenario.precision), s.global_batch, s.seq_len)
      << "  " << strategy_text(s) << '\n';
  if (!answer.feasible) out << style.red("  infeasible  ") << answer.reason << '\n';
  print_warnings(out, answer, style);
  if (!answer.priced) return;
  if (!answer.feasible) out << "\n  If it had the memory:\n";
  out << '\n';
  print_table(out, summary(scenario, answer), style);
  out << '\n';
  print_table(out, time_table(answer), style);
  out << '\n';
  print_table(out, memory_table(answer), style);
}

void explain_answer(std::ostream& out, const Scenario& scenario, const Answer& answer,
                    const Style& style) {
  if (answer.priced) {
    out << '\n';
    print_table(out, stage_table(answer), style);
    out << '\n';
    print_table(out, kernel_table(answer), style);
  }
  out << '\n';
  Table table{.columns = {{"assumed"}, {"value"}, {"because"}}, .rows = {}, .indent = "  "};
  for (const auto& [field, value, reason] : scenario.assumptions) {
    table.rows.push_back({field, value, reason});
  }
  print_table(out, table, style);
}

}  // namespace orrery

#include "report/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/count.h"
#include "units/text.h"

namespace orrery {
namespace {

using namespace literals;

constexpr std::size_t longest_kernels = 12, largest_buffers = 12;
constexpr std::array gpu_terms = {MemoryTerm::weights,       MemoryTerm::gradients,
                                  MemoryTerm::optimizer,     MemoryTerm::activations,
                                  MemoryTerm::workspace,     MemoryTerm::logits,
                                  MemoryTerm::communication, MemoryTerm::framework};

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
                     record.extrapolated ? ", none of them near this job" : "");
}

void print_warnings(std::ostream& out, const Answer& answer, const Style& style) {
  for (const std::string& warning : answer.warnings) {
    out << style.bold("  warning  ") << warning << '\n';
  }
}

// What is not plain training with Adam, with a comma behind.
std::string job_text(const Job& job) {
  std::string text;
  if (job.task != Task::pretrain) text += std::string(name_of(job.task));
  if (job.lora_rank > 0) text += fmt::format(" of rank {}", job.lora_rank);
  if (!text.empty()) text += ", ";
  if (job.optimizer != Optimizer::adam) text += fmt::format("{}, ", name_of(job.optimizer));
  return text;
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

std::string memory_text(const Answer& answer) {
  std::string text = fmt::format("{} of {} on {}", gib(answer.needed()), gib(answer.capacity),
                                 answer.classes[answer.memory.at]);
  if (answer.balanced) {
    text += fmt::format("; {} if the experts were balanced", gib(*answer.balanced));
  }
  if (answer.host > Bytes()) text += fmt::format("; {} of each node's own", gib(answer.host));
  return text;
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
      {"memory", memory_text(answer)},
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
  for (const MemoryTerm term : gpu_terms) {
    const Bytes held = answer.memory.footprint[static_cast<std::size_t>(term)];
    const double share = held / answer.capacity;
    table.rows.push_back({std::string(name_of(term)), gib(held), percent(share), bar(share)});
  }
  return table;
}

Table stage_table(const Answer& answer) {
  Table table{.columns = {{"memory by stage, GiB"}}, .rows = {}, .indent = "  "};
  for (const MemoryTerm term : gpu_terms) {
    table.columns.push_back({std::string(name_of(term)), Align::right});
  }
  table.columns.push_back({"in all", Align::right});
  for (const ClassId id : answer.memory.by_class.ids()) {
    const Footprint& footprint = answer.memory.by_class[id];
    std::vector<std::string> row = {answer.classes[id]};
    for (const MemoryTerm term : gpu_terms) {
      row.push_back(fmt::format("{:.2f}", footprint[static_cast<std::size_t>(term)] / 1_GiB));
    }
    row.push_back(fmt::format("{:.2f}", total(footprint) / 1_GiB));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table buffer_table(const Autopsy& autopsy) {
  Table table{.columns = {{"largest buffers at the peak"},
                          {"for"},
                          {"how many", Align::right},
                          {"in all", Align::right}},
              .rows = {},
              .indent = "  "};
  for (std::size_t i = 0; i < std::min(largest_buffers, autopsy.buffers.size()); ++i) {
    const HeldBuffer& buffer = autopsy.buffers[i];
    table.rows.push_back({buffer.name, std::string(name_of(buffer.term)),
                          grouped(static_cast<double>(buffer.instances)), gib(buffer.size)});
  }
  return table;
}

Table fix_table(const Autopsy& autopsy, const Answer& answer) {
  Table table{.columns = {{"to free memory"},
                          {"frees", Align::right},
                          {"peak then", Align::right},
                          {""},
                          {"step time", Align::right}},
              .rows = {},
              .indent = "  "};
  for (const Fix& fix : autopsy.fixes) {
    table.rows.push_back({fix.flags, gib(answer.needed() - fix.peak), gib(fix.peak),
                          fix.fits ? "fits" : "too much",
                          fmt::format("{:+.1f} %", 100 * (fix.step_ratio - 1))});
  }
  return table;
}

void print_autopsy(std::ostream& out, const Answer& answer, const Style& style) {
  const Autopsy& autopsy = *answer.autopsy;
  out << '\n';
  print_table(out, buffer_table(autopsy), style);
  if (!autopsy.fixes.empty()) {
    out << '\n';
    print_table(out, fix_table(autopsy, answer), style);
  }
  const auto text = [](const std::optional<std::int64_t>& most, const char* unit) {
    return most ? grouped(static_cast<double>(*most)) + unit : "none";
  };
  out << "\n  the longest sequence that fits, all else as it is: "
      << text(autopsy.longest_sequence, " tokens")
      << "\n  the largest micro-batch: " << text(autopsy.largest_micro_batch, "") << '\n';
  if (!autopsy.split) return;
  out << fmt::format("  a faster division of the layers: --split {} ({:.1f} % less time a step)\n",
                     fmt::join(autopsy.split->stage_layers, ","),
                     100 * (1 - autopsy.split->step / answer.step));
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
  if (s.cp > 1) text += fmt::format("  cp {} ({})", s.cp, name_of(s.context_kind));
  if (s.ep > 1) text += fmt::format("  ep {}", s.ep);
  if (s.etp > 1) text += fmt::format("  etp {}", s.etp);
  if (s.vpp > 1) text += fmt::format("  vpp {}", s.vpp);
  text += fmt::format("  micro-batch {}  zero {}  recompute {}", s.micro_batch,
                      static_cast<int>(s.zero), name_of(s.recompute));
  if (s.recompute != Recompute::none && s.recompute_share < 1) {
    text += fmt::format(" ({:.0f} % of layers)", 100 * s.recompute_share);
  }
  if (s.offload != Offload::none) {
    text +=
        fmt::format("  offload {} to {}", name_of(s.offload), s.offload_to_nvme ? "nvme" : "cpu");
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
      << fmt::format("  {}, {}, {}{} sequences of {} tokens a step\n", scenario.framework.name,
                     to_text(scenario.precision), job_text(scenario.job), s.global_batch, s.seq_len)
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
    if (answer.autopsy) print_autopsy(out, answer, style);
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

#include "twin/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "units/text.h"

namespace orrery {
namespace {

// One kernel from compiled code: what the driver needs, 2 to 4 us (te42kyfo/gpu-benches@ded6f57,
// launch overhead). One node of a CUDA graph: about 1 us. A kernel's own start is part of its time,
// about 3 us in tables of products under CUDA graphs (data/measurements/overheads.csv).
constexpr Seconds driver_launch(4e-6), graph_node(1e-6);

// Below, the errors of predictions (4.7 % in the median) are larger than what the host adds.
constexpr double noticed = 0.05;

Seconds sum(const Breakdown& time) {
  return time.compute + time.exposed_comm + time.bubble + time.optimizer + time.overhead +
         time.host;
}

}  // namespace

std::string_view name_of(Launch launch) {
  switch (launch) {
    case Launch::eager:
      return "eager";
    case Launch::compiled:
      return "compiled";
    case Launch::graph:
      return "graph";
  }
  return "";
}

void change_launch(Framework& framework, Launch launch) {
  const auto lower = [](auto& fact, auto to) {
    if (fact.value() > to) fact = {to, {Evidence::assumed, "", "", ""}};
  };
  switch (launch) {
    case Launch::eager:
      return;
    case Launch::compiled:
      lower(framework.launch, driver_launch);
      lower(framework.traffic, 1.0);
      return;
    case Launch::graph:
      lower(framework.launch, graph_node);
      return;
  }
}

std::vector<Assumption> launch_assumptions(const Framework& changed, Launch launch) {
  const std::string time = to_text(changed.launch.value());
  switch (launch) {
    case Launch::eager:
      return {};
    case Launch::compiled:
      return {{"host time a kernel", time, "what the driver needs; Python is compiled away"},
              {"memory-bound traffic", fmt::format("{:g}", changed.traffic.value()),
               "each operator is one kernel that moves its operands once"}};
    case Launch::graph:
      return {{"host time a kernel", time, "of a node of a CUDA graph, of which all are captured"}};
  }
  return {};
}

std::vector<std::string> launch_cautions(const Scenario& scenario) {
  std::vector<std::string> cautions;
  if (scenario.launch == scenario.framework.defaults.launch) return cautions;
  if (!scenario.framework.rules.launch) {
    cautions.push_back(fmt::format("--launch {} is assumed to work with {}: no source was found",
                                   name_of(scenario.launch), scenario.framework.name));
  }
  if (scenario.launch != Launch::graph) return cautions;
  // Megatron Bridge's documentation, CUDA Graphs: memory impact, MoE considerations.
  cautions.push_back(
      fmt::format("CUDA graphs keep static buffers that the memory here leaves out: a few GB{}",
                  scenario.strategy.pp > 1 ? ", with pp > 1 more than 10 GB" : ""));
  if (scenario.model.experts.count > 0 && !scenario.job.fixed_capacity) {
    cautions.push_back(
        "CUDA graphs need static shapes, which routed tokens have only with a --capacity: the "
        "experts' kernels are launched one by one, here they are counted as captured");
  }
  return cautions;
}

std::string_view bound_of(const Breakdown& time) {
  if (time.host >= noticed * sum(time)) return "host";
  const std::pair<std::string_view, Seconds> parts[] = {{"compute", time.compute},
                                                        {"communication", time.exposed_comm},
                                                        {"pipeline", time.bubble},
                                                        {"optimizer", time.optimizer},
                                                        {"overhead", time.overhead}};
  return std::max_element(std::begin(parts), std::end(parts),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::string host_warning(const Scenario& scenario, const Breakdown& time) {
  if (bound_of(time) != "host") return "";
  const auto accepts_graphs = accepts(scenario.framework.rules.launch, "graph");
  return fmt::format(
      "host: {:.0f} % of the step waits for launches ({} a kernel); {}a larger "
      "micro-batch would hide them",
      100 * (time.host / sum(time)), to_text(scenario.framework.launch.value()),
      scenario.launch != Launch::graph && accepts_graphs ? "--launch graph (CUDA graphs) or " : "");
}

}  // namespace orrery

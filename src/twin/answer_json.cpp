#include "model/count.h"
#include "twin/twin.h"
#include "units/text.h"

namespace orrery {
namespace {

using namespace literals;

Json strings(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

Json assumptions_json(const std::vector<Assumption>& assumptions) {
  Json list = Json::array();
  for (const auto& [field, value, reason] : assumptions) {
    list.push_back(Json::object({{"field", field}, {"value", value}, {"reason", reason}}));
  }
  return list;
}

Json evidence_json(const TrackRecord& record) {
  const bool known = record.n > 0;
  return Json::object({{"group", record.group},
                       {"n", record.n},
                       {"median_abs_error", known ? Json(record.median_abs_error) : Json()},
                       {"nearest", record.nearest.empty() ? Json() : Json(record.nearest)},
                       {"extrapolated", record.extrapolated}});
}

double gib(Bytes bytes) { return bytes / 1_GiB; }

Json footprint_json(const Footprint& footprint) {
  Json terms = Json::object();
  for (std::size_t i = 0; i < footprint.size(); ++i) {
    terms.set(name_of(static_cast<MemoryTerm>(i)), gib(footprint[i]));
  }
  return terms;
}

Json memory_json(const Answer& answer) {
  Json stages = Json::array();
  for (const ClassId id : answer.memory.by_class.ids()) {
    const Footprint& footprint = answer.memory.by_class[id];
    stages.push_back(Json::object({{"ranks", answer.classes[id]},
                                   {"peak_gib", gib(total(footprint))},
                                   {"breakdown", footprint_json(footprint)}}));
  }
  return Json::object({{"peak_gib", gib(answer.needed())},
                       {"capacity_gib", gib(answer.capacity)},
                       {"at", answer.classes[answer.memory.at]},
                       {"breakdown", footprint_json(answer.memory.footprint)},
                       {"stages", std::move(stages)}});
}

Json time_json(const Answer& answer) {
  const Breakdown& time = answer.time;
  return Json::object({{"breakdown", Json::object({{"compute", time.compute.value()},
                                                   {"exposed_comm", time.exposed_comm.value()},
                                                   {"bubble", time.bubble.value()},
                                                   {"optimizer", time.optimizer.value()},
                                                   {"overhead", time.overhead.value()}})}});
}

Json dollars(const std::optional<Dollars>& value) { return value ? Json(value->value()) : Json(); }

Json cost_json(const Scenario& scenario, const Answer& answer) {
  Json cost = Json::object(
      {{"usd_per_gpu_hour", scenario.gpu_price ? Json(*scenario.gpu_price * 1_h / 1_USD) : Json()},
       {"usd_per_step", dollars(answer.step_cost)},
       {"usd_per_million_tokens", dollars(answer.cost_per_million_tokens)}});
  if (scenario.tokens) {
    const double steps = *answer.run_time / answer.step;
    cost.set("run", Json::object({{"tokens", scenario.tokens->value()},
                                  {"days", *answer.run_time / 24_h},
                                  {"gpu_hours", *answer.run_time / 1_h *
                                                    static_cast<double>(scenario.cluster.gpus)},
                                  {"kwh", steps * (answer.step_energy / 1_kWh)},
                                  {"usd", dollars(answer.run_cost)}}));
  }
  return cost;
}

Json machine_json(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto& cap = scenario.power_cap;
  return Json::object({{"gpu", cluster.gpu.name},
                       {"gpus", cluster.gpus},
                       {"gpus_per_node", cluster.gpus_per_node},
                       {"node", cluster.node.name},
                       {"fabric", cluster.fabric ? Json(cluster.fabric->name) : Json()},
                       {"oversubscription", cluster.oversubscription},
                       {"power_cap_w", cap ? Json(cap->value()) : Json()}});
}

// The keys of a priced answer; null where the strategy breaks a rule.
void set_numbers(Json& json, const Scenario& scenario, const Answer& answer) {
  const auto number = [&](double value) { return answer.priced ? Json(value) : Json(); };
  json.set("step_time_s", number(answer.step.value()));
  json.set("tokens_per_s", number(answer.tokens_per_s));
  json.set("tokens_per_s_per_gpu", number(answer.tokens_per_s_per_gpu));
  json.set("model_tflops_per_gpu", number(answer.model_flops_per_gpu / 1e12));
  json.set("flop_convention", name_of(scenario.convention));
  json.set("mfu", number(answer.mfu));
  json.set("hfu", number(answer.hfu));
  json.set("mfu_peak", Json::object({{"precision", to_text(scenario.precision)},
                                     {"tflops", answer.peak.value() / 1e12}}));
  json.set("memory", answer.priced ? memory_json(answer) : Json());
  json.set("time", answer.priced ? time_json(answer) : Json());
  json.set("power", Json::object({{"avg_gpu_w", number(answer.gpu_power.value())}}));
  json.set("energy", Json::object({{"kwh_per_step", number(answer.step_energy / 1_kWh)}}));
  json.set("cost", answer.priced ? cost_json(scenario, answer) : Json());
}

}  // namespace

Json to_json(const Strategy& s) {
  return Json::object({{"tp", s.tp},
                       {"pp", s.pp},
                       {"vpp", s.vpp},
                       {"dp", s.dp},
                       {"cp", s.cp},
                       {"ep", 1},
                       {"micro_batch", s.micro_batch},
                       {"global_batch", s.global_batch},
                       {"seq_len", s.seq_len},
                       {"sequence_parallel", s.sequence_parallel},
                       {"zero", static_cast<int>(s.zero)},
                       {"shard_ranks", s.shard_ranks},
                       {"recompute", name_of(s.recompute)},
                       {"recompute_share", s.recompute == Recompute::none ? 0 : s.recompute_share},
                       {"schedule", name_of(s.schedule)}});
}

Json kernels_json(const Answer& answer) {
  Json list = Json::array();
  for (const KernelShare& kernel : answer.kernels) {
    list.push_back(Json::object(
        {{"name", kernel.name}, {"launches", kernel.launches}, {"seconds", kernel.time.value()}}));
  }
  return list;
}

Json to_json(const Scenario& scenario, const Answer& answer) {
  Json json = Json::object({{"schema_version", 1},
                            {"warnings", strings(answer.warnings)},
                            {"assumptions", assumptions_json(scenario.assumptions)}});
  json.set("evidence", answer.priced ? evidence_json(answer.evidence) : Json());
  json.set("error_band", answer.priced ? Json::object({{"low", answer.band.low.value()},
                                                       {"high", answer.band.high.value()}})
                                       : Json());
  json.set("feasible", answer.feasible);
  json.set("reason", answer.feasible ? Json() : Json(answer.reason));
  set_numbers(json, scenario, answer);
  const std::int64_t count = parameters(scenario.model).total();
  json.set("parameters", Json::object({{"total", count}, {"active", count}}));
  json.set("model", scenario.model.name);
  json.set("machine", machine_json(scenario));
  json.set("framework", scenario.framework.name);
  json.set("precision", to_text(scenario.precision));
  json.set("strategy", to_json(scenario.strategy));
  return json;
}

}  // namespace orrery

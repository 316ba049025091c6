#include "model/count.h"
#include "twin/deepspeed_estimate.h"
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
    if (static_cast<MemoryTerm>(i) == MemoryTerm::host) continue;
    terms.set(name_of(static_cast<MemoryTerm>(i)), gib(footprint[i]));
  }
  return terms;
}

Json buffers_json(const Autopsy& autopsy) {
  Json list = Json::array();
  for (const HeldBuffer& buffer : autopsy.buffers) {
    list.push_back(Json::object({{"name", buffer.name},
                                 {"term", name_of(buffer.term)},
                                 {"instances", buffer.instances},
                                 {"gib", gib(buffer.size)}}));
  }
  return list;
}

Json fixes_json(const Autopsy& autopsy, Bytes needed) {
  Json list = Json::array();
  for (const Fix& fix : autopsy.fixes) {
    list.push_back(Json::object({{"flags", fix.flags},
                                 {"peak_gib", gib(fix.peak)},
                                 {"frees_gib", gib(needed - fix.peak)},
                                 {"fits", fix.fits},
                                 {"step_ratio", fix.step_ratio}}));
  }
  return list;
}

// What --explain adds.
void set_autopsy(Json& memory, const Answer& answer) {
  const Autopsy& autopsy = *answer.autopsy;
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json();
  };
  memory.set("buffers", buffers_json(autopsy));
  memory.set("fixes", fixes_json(autopsy, answer.needed()));
  if (autopsy.split) {
    Json layers = Json::array();
    for (const std::int64_t count : autopsy.split->stage_layers) layers.push_back(count);
    memory.set("faster_split", Json::object({{"stage_layers", std::move(layers)},
                                             {"step_time_s", autopsy.split->step.value()}}));
  }
  memory.set("longest_sequence", number(autopsy.longest_sequence));
  memory.set("largest_micro_batch", number(autopsy.largest_micro_batch));
}

Json memory_json(const Scenario& scenario, const Answer& answer) {
  Json stages = Json::array();
  for (const ClassId id : answer.memory.by_class.ids()) {
    const Footprint& footprint = answer.memory.by_class[id];
    stages.push_back(Json::object({{"ranks", answer.classes[id]},
                                   {"peak_gib", gib(total(footprint))},
                                   {"breakdown", footprint_json(footprint)}}));
  }
  const Footprint& peak = answer.memory.footprint;
  const Bytes allocated = answer.needed() - peak[static_cast<std::size_t>(MemoryTerm::framework)];
  Json memory =
      Json::object({{"peak_gib", gib(answer.needed())},
                    {"allocated_gib", gib(allocated)},
                    {"capacity_gib", gib(answer.capacity)},
                    {"band", name_of(answer.fill())},
                    {"at", answer.classes[answer.memory.at]},
                    {"host_gib", gib(answer.host)},
                    {"balanced_peak_gib", answer.balanced ? Json(gib(*answer.balanced)) : Json()},
                    {"padded_vocab", padded_vocab(scenario)},
                    {"breakdown", footprint_json(peak)},
                    {"stages", std::move(stages)}});
  if (const auto estimate = deepspeed_estimate(scenario)) {
    memory.set("deepspeed_estimate",
               Json::object({{"gpu_gib", gib(estimate->gpu)}, {"host_gib", gib(estimate->host)}}));
  }
  if (answer.autopsy) set_autopsy(memory, answer);
  return memory;
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

Json job_json(const Job& job) {
  Json frozen = Json::array();
  if (job.freezes_stack) frozen.push_back("language");
  if (job.freezes_towers) frozen.push_back("vision");
  if (job.freezes_projector) frozen.push_back("projector");
  return Json::object({{"task", name_of(job.task)},
                       {"optimizer", name_of(job.optimizer)},
                       {"lora_rank", job.lora_rank},
                       {"frozen", std::move(frozen)},
                       {"packed", job.documents},
                       {"padding", job.padding},
                       {"images", job.images},
                       {"expert_load", job.expert_load},
                       {"fp8_copies", name_of(job.fp8_copies)}});
}

Json layers_json(const std::vector<std::int64_t>& layers) {
  Json list = Json::array();
  for (const std::int64_t count : layers) list.push_back(count);
  return list;
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
  json.set("memory", answer.priced ? memory_json(scenario, answer) : Json());
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
                       {"cp_kind", name_of(s.context_kind)},
                       {"ep", s.ep},
                       {"etp", s.etp},
                       {"micro_batch", s.micro_batch},
                       {"global_batch", s.global_batch},
                       {"seq_len", s.seq_len},
                       {"sequence_parallel", s.sequence_parallel},
                       {"zero", static_cast<int>(s.zero)},
                       {"shard_ranks", s.shard_ranks},
                       {"recompute", name_of(s.recompute)},
                       {"recompute_share", s.recompute == Recompute::none ? 0 : s.recompute_share},
                       {"schedule", name_of(s.schedule)},
                       {"split", layers_json(s.stage_layers)},
                       {"offload", name_of(s.offload)},
                       {"offload_to", s.offload_to_nvme ? "nvme" : "cpu"}});
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
  json.set("job", job_json(scenario.job));
  json.set("strategy", to_json(scenario.strategy));
  return json;
}

}  // namespace orrery

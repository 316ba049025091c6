#include "catalog/framework.h"

#include "core/fields.h"
#include "units/text.h"

namespace orrery {
namespace {

Framework::Defaults defaults_of(Fields fields) {
  Framework::Defaults defaults;
  defaults.sequence_parallel = fields.required<bool>("sequence_parallel");
  defaults.zero = fields.required_in<std::int64_t>("zero", 0, 3);
  defaults.recompute = fields.required<std::string>("recompute");
  defaults.attention =
      fields.choice<AttentionKernel>("attention", {{"flash", AttentionKernel::flash},
                                                   {"early_flash", AttentionKernel::early_flash},
                                                   {"unfused", AttentionKernel::unfused}});
  defaults.dropout = fields.required<bool>("dropout");
  defaults.equal_chunks = fields.required<bool>("equal_chunks");
  defaults.layers_per_chunk = fields.required_in<std::int64_t>("layers_per_chunk", 0, 1000);
  fields.finish();
  return defaults;
}

Framework::PerParameter per_parameter_of(Fields fields) {
  Framework::PerParameter bytes;
  bytes.weights = fields.required<Fact<double>>("weights");
  bytes.gradients = fields.required<Fact<double>>("gradients");
  bytes.optimizer = fields.required<Fact<double>>("optimizer");
  bytes.reduce = fields.required<Fact<double>>("reduce");
  bytes.gather = fields.required<Fact<double>>("gather");
  bytes.head_gradient = fields.required<Fact<double>>("head_gradient");
  bytes.accumulate = fields.required<Fact<double>>("accumulate");
  bytes.logit = fields.required<Fact<double>>("logit");
  fields.finish();
  return bytes;
}

Framework::Exposed exposed_of(Fields fields) {
  Framework::Exposed exposed;
  exposed.tensor = fields.required<Fact<double>>("tensor");
  exposed.context = fields.required<Fact<double>>("context");
  exposed.expert = fields.required<Fact<double>>("expert");
  exposed.data = fields.required<Fact<double>>("data");
  exposed.pipeline = fields.required<Fact<double>>("pipeline");
  fields.finish();
  return exposed;
}

Framework::Experts experts_of(Fields fields) {
  Framework::Experts experts;
  experts.sixteen_bit = fields.required<Fact<double>>("sixteen_bit");
  experts.eight_bit = fields.required<Fact<double>>("eight_bit");
  experts.traffic = fields.required<Fact<double>>("traffic");
  experts.once_per_node = fields.required<bool>("once_per_node");
  fields.finish();
  return experts;
}

}  // namespace

Framework framework_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  Framework framework;
  framework.name = fields.required<std::string>("name");
  framework.title = fields.required<std::string>("title");
  framework.rules_entry = fields.required<std::string>("rules");
  framework.defaults = defaults_of(fields.nested("defaults"));
  framework.per_parameter = per_parameter_of(fields.nested("bytes_per_parameter"));
  framework.reshard_after_forward = fields.required<bool>("reshard_after_forward");
  framework.holds_gathered_in_pipelines = fields.required<bool>("holds_gathered_in_pipelines");
  framework.scatters_sends = fields.required<bool>("scatters_sends");
  framework.shards_checkpoints = fields.required<bool>("shards_checkpoints");
  framework.fuses_accumulation = fields.required<bool>("fuses_accumulation");
  framework.overlaps_gradients = fields.required<bool>("overlaps_gradients");
  framework.context = fields.required<Fact<Bytes>>("context");
  framework.slack = fields.required<Fact<double>>("slack");
  framework.gives_back = fields.required<bool>("gives_back");
  framework.exposed = exposed_of(fields.nested("exposed"));
  framework.experts = experts_of(fields.nested("experts"));
  framework.quality = fields.required<Fact<double>>("quality");
  framework.dequantise = fields.required<Fact<double>>("dequantise");
  framework.kept = fields.required<Fact<double>>("kept");
  framework.traffic = fields.required<Fact<double>>("traffic");
  framework.launch = fields.required<Fact<Seconds>>("launch");
  framework.step_overhead = fields.required<Fact<Seconds>>("step_overhead");
  framework.rank_latency = fields.required<Fact<Seconds>>("rank_latency");
  framework.network_share = fields.required<Fact<double>>("network_share");
  framework.growth = fields.required<Fact<double>>("growth");
  for (const auto* key : {"sources", "aliases", "kind", "fit"}) fields.ignore(key);
  fields.finish();
  return framework;
}

}  // namespace orrery

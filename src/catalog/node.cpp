#include "catalog/node.h"

#include <algorithm>

#include "catalog/sources.h"

namespace orrery {

std::string_view to_text(GpuLink link) { return link == GpuLink::nvlink ? "nvlink" : "pcie"; }

bool Node::takes_gpu(std::string_view gpu_name) const {
  return std::ranges::any_of(
      takes, [&](const std::string& known) { return known == "any" || known == gpu_name; });
}

Node node_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  Node node;
  node.name = fields.required<std::string>("name");
  node.title = fields.required<std::string>("title");
  fields.optional<std::vector<std::string>>("aliases");
  node.takes = fields.required<std::vector<std::string>>("takes");
  node.gpus = fields.required<Fact<std::int64_t>>("gpus");
  if (node.gpus.value() < 1) fields.fail("gpus", "must be at least 1");
  node.link =
      fields.choice<GpuLink>("link", {{"nvlink", GpuLink::nvlink}, {"pcie", GpuLink::pcie}});
  node.nvswitch = fields.required<bool>("nvswitch");
  node.nvls = fields.required<bool>("nvls");
  if (node.nvls && !node.nvswitch) fields.fail("nvls", "only an NVSwitch reduces");
  node.nics = fields.required<Fact<std::int64_t>>("nics");
  node.nic_rate = fields.required<Fact<BytesPerSecond>>("nic_rate");
  node.host_power = fields.required<Fact<Watts>>("host_power");
  node.fabric = fields.optional<std::string>("fabric");
  check_sources(fields);
  fields.finish();
  return node;
}

}  // namespace orrery

#include "catalog/fabric.h"

#include "catalog/sources.h"
#include "core/error.h"

namespace orrery {
namespace {

Fact<double> share(Fields& fields, std::string_view key) {
  Fact<double> fact = fields.required<Fact<double>>(key);
  if (!(fact.value() > 0 && fact.value() <= 1)) fields.fail(key, "must be a share, above 0 to 1");
  return fact;
}

}  // namespace

std::string_view to_text(FabricKind kind) {
  switch (kind) {
    case FabricKind::infiniband:
      return "infiniband";
    case FabricKind::roce:
      return "roce";
    case FabricKind::efa:
      return "efa";
    case FabricKind::omnipath:
      return "omnipath";
    case FabricKind::ethernet:
      return "ethernet";
    case FabricKind::tcpx:
      return "tcpx";
  }
  return "";
}

BytesPerSecond Fabric::per_gpu(std::int64_t gpus_per_node) const {
  EXPECT(gpus_per_node >= 1);
  if (port == PortOf::gpu) return rate.value();
  return rate.value() / static_cast<double>(gpus_per_node);
}

Fabric fabric_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  Fabric fabric;
  fabric.name = fields.required<std::string>("name");
  fabric.title = fields.required<std::string>("title");
  fields.optional<std::vector<std::string>>("aliases");
  fabric.kind = fields.choice<FabricKind>("kind", {{"infiniband", FabricKind::infiniband},
                                                   {"roce", FabricKind::roce},
                                                   {"efa", FabricKind::efa},
                                                   {"omnipath", FabricKind::omnipath},
                                                   {"ethernet", FabricKind::ethernet},
                                                   {"tcpx", FabricKind::tcpx}});
  fabric.port = fields.choice<PortOf>("port", {{"gpu", PortOf::gpu}, {"node", PortOf::node}});
  fabric.rate = fields.required<Fact<BytesPerSecond>>("rate");
  if (!(fabric.rate.value() > BytesPerSecond())) fields.fail("rate", "must be more than zero");
  fabric.efficiency = share(fields, "efficiency");
  fabric.collective_efficiency = share(fields, "collective_efficiency");
  fabric.latency = fields.required<Fact<Seconds>>("latency");
  fabric.oversubscription = fields.required<Fact<double>>("oversubscription");
  if (!(fabric.oversubscription.value() >= 1)) {
    fields.fail("oversubscription", "must be at least 1");
  }
  fabric.rail_optimised = fields.required<bool>("rail_optimised");
  check_sources(fields);
  fields.finish();
  return fabric;
}

}  // namespace orrery

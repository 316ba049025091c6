#include "catalog/cluster.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace orrery {

BytesPerSecond Cluster::intra() const {
  if (node.link == GpuLink::nvlink && gpu.nvlink) return gpu.nvlink->bandwidth.value();
  return gpu.pcie.bandwidth.value();
}

BytesPerSecond Cluster::inter() const {
  EXPECT(fabric.has_value());
  return fabric->per_gpu(gpus_per_node);
}

Seconds Cluster::inter_latency() const {
  EXPECT(fabric.has_value());
  return fabric->latency.value();
}

Cluster make_cluster(Gpu gpu, Node node, std::optional<Fabric> fabric, std::int64_t gpus,
                     std::int64_t gpus_per_node) {
  if (!node.takes_gpu(gpu.name)) {
    throw InputError(gpu.name + " does not go into " + node.name,
                     node.name + " takes " + join(node.takes));
  }
  if (gpus < 1) throw InputError("a cluster needs at least 1 GPU, not " + std::to_string(gpus));
  const std::int64_t most = node.gpus.value();
  if (gpus_per_node == 0) gpus_per_node = std::min(gpus, most);
  if (gpus_per_node < 1 || gpus_per_node > most) {
    throw InputError(std::to_string(gpus_per_node) + " GPUs a node is not possible",
                     node.name + " holds 1 to " + std::to_string(most));
  }
  if (gpus % gpus_per_node != 0) {
    const std::int64_t below = gpus / gpus_per_node * gpus_per_node;
    throw InputError(
        std::to_string(gpus) + " GPUs do not fill nodes of " + std::to_string(gpus_per_node), "",
        "use " + (below > 0 ? std::to_string(below) + " or " : "") +
            std::to_string(below + gpus_per_node));
  }
  if (gpus > gpus_per_node && !fabric) {
    throw InputError(
        std::to_string(gpus / gpus_per_node) + " nodes of " + node.name + " need a fabric",
        "none was named", "name one, such as ethernet-25");
  }
  const double oversubscription = fabric ? fabric->oversubscription.value() : 1;
  return {std::move(gpu), std::move(node), std::move(fabric),
          gpus,           gpus_per_node,   oversubscription};
}

}  // namespace orrery

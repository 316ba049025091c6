#include "catalog/cluster.h"

#include <gtest/gtest.h>

#include <functional>

#include "catalog/catalog.h"
#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

Cluster cluster(const std::string& gpu, const std::string& node, const std::string& fabric,
                std::int64_t gpus, std::int64_t gpus_per_node = 0) {
  std::optional<Fabric> joined;
  if (!fabric.empty()) joined = catalog().fabric(fabric);
  return make_cluster(catalog().gpu(gpu), catalog().node(node), joined, gpus, gpus_per_node);
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Cluster, OfDgxNodesUsesNvLinkInsideAndAPortAGpuOutside) {
  const Cluster c = cluster("h100-sxm", "dgx-h100", "ndr400-rail", 128);
  EXPECT_EQ(c.gpus_per_node, 8);
  EXPECT_EQ(c.nodes(), 16);
  EXPECT_DOUBLE_EQ(c.intra() / 1_GBps, 450);
  EXPECT_DOUBLE_EQ(c.inter() / 1_GBps, 50);
  EXPECT_DOUBLE_EQ(c.inter_core() / 1_GBps, 50);
}

TEST(Cluster, SharesANodesPortAmongItsGpus) {
  EXPECT_DOUBLE_EQ(cluster("a100", "jean-zay-a100", "omnipath-4x100", 384).inter() / 1_GBps, 6.25);
  EXPECT_DOUBLE_EQ(cluster("v100", "jean-zay-v100", "omnipath-4x100", 64).inter() / 1_GBps, 12.5);
}

TEST(Cluster, UsesPcieWhereThereIsNoNvLink) {
  EXPECT_DOUBLE_EQ(cluster("rtx-4090", "pcie-workstation", "", 2).intra() / 1_GBps, 31.5);
  EXPECT_DOUBLE_EQ(cluster("h100-pcie", "pcie-workstation", "", 2).intra() / 1_GBps, 63);
}

TEST(Cluster, OfFewerGpusThanANodeHoldsIsOneNode) {
  const Cluster c = cluster("h100-sxm", "dgx-h100", "", 4);
  EXPECT_EQ(c.gpus_per_node, 4);
  EXPECT_EQ(c.nodes(), 1);
}

TEST(Cluster, SaysWhyItCannotBeBuilt) {
  EXPECT_EQ(refusal([] { cluster("a100", "dgx-h100", "", 8); }),
            "a100-sxm-80gb does not go into dgx-h100 (dgx-h100 takes h100-sxm, "
            "h100-sxm-96gb-500w)");
  EXPECT_EQ(refusal([] { cluster("h100", "dgx-h100", "ndr400", 12); }),
            "12 GPUs do not fill nodes of 8; use 8 or 16");
  EXPECT_EQ(refusal([] { cluster("h100", "dgx-h100", "ndr400", 3, 2); }),
            "3 GPUs do not fill nodes of 2; use 2 or 4");
  EXPECT_EQ(refusal([] { cluster("h100", "dgx-h100", "ndr400", 32, 16); }),
            "16 GPUs a node is not possible (dgx-h100 holds 1 to 8)");
  EXPECT_EQ(refusal([] { cluster("rtx-4090", "single-card", "", 2); }),
            "2 nodes of single-card need a fabric (none was named); name one, such as "
            "ethernet-25");
  EXPECT_EQ(refusal([] { cluster("h100", "dgx-h100", "", 0); }),
            "a cluster needs at least 1 GPU, not 0");
}

}  // namespace
}  // namespace orrery

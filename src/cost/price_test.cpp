// How a framework's habits turn durations into prices.
#include "cost/price.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "cost/collective.h"

namespace orrery {
namespace {

Fact<double> fact(double value) { return {value, {Evidence::assumed, "test", "", ""}}; }

class PriceTest : public ::testing::Test {
 protected:
  Prices priced(GroupKind kind, std::int64_t gpus = 16) {
    cluster = make_cluster(catalog.gpu("h100-sxm"), catalog.node("dgx-h100"),
                           catalog.fabric("ndr400-rail"), gpus);
    Program program;
    program.comms.push_back({CollectiveOp::all_gather, kind, {8, 1}, Bytes(1e9), Precision::bf16});
    program.classes.push_back({});
    program.classes[ClassId(0)].ranks = gpus;
    alone = collective_time(program.comms[CommId(0)], network_of(cluster));
    return price(program, {.cluster = cluster,
                           .kernels = kernels,
                           .framework = framework,
                           .attention = AttentionKernel::flash});
  }

  Catalog catalog = Catalog::load(default_data_dir());
  JobKernels kernels = job_kernels(catalog, catalog.gpu("h100-sxm"));
  Framework framework = catalog.framework("nemo");
  Cluster cluster;
  Seconds alone;
};

TEST_F(PriceTest, TensorCollectivesShrinkToTheirExposedShare) {
  framework.exposed.tensor = fact(0.25);
  const Price price = priced(GroupKind::tensor).comms[CommId(0)];
  EXPECT_NEAR(price.duration / alone, 0.25, 1e-12);
  EXPECT_EQ(price.stolen, Seconds());
}

TEST_F(PriceTest, DataCollectivesKeepTheirLengthAndTakeAShareFromCompute) {
  framework.exposed.data = fact(0.25);
  framework.rank_latency = Fact<Seconds>(Seconds(0), {Evidence::assumed, "test", "", ""});
  const Price price = priced(GroupKind::data).comms[CommId(0)];
  EXPECT_NEAR(price.duration / alone, 1, 1e-12);
  EXPECT_NEAR(price.stolen / alone, 0.25, 1e-12);
}

TEST_F(PriceTest, ASlowNetworkStackSlowsOnlyWhatCrossesNodes) {
  const Seconds inside = priced(GroupKind::data).comms[CommId(0)].duration;
  framework.network_share = fact(0.1);
  EXPECT_EQ(priced(GroupKind::data).comms[CommId(0)].duration, inside);
  EXPECT_LT(priced(GroupKind::data).point_to_point, BytesPerSecond(6e9));
}

TEST_F(PriceTest, StagesThatShareANodeTalkOverItsLinks) {
  const Prices inside = priced(GroupKind::data, 8), across = priced(GroupKind::data, 16);
  EXPECT_GT(inside.point_to_point, 4 * across.point_to_point);
  EXPECT_LT(inside.point_to_point_latency, across.point_to_point_latency);
}

}  // namespace
}  // namespace orrery

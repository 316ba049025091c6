#include "cost/collective.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;

constexpr CollectiveOp all_ops[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                    CollectiveOp::reduce_scatter, CollectiveOp::all_to_all,
                                    CollectiveOp::broadcast};

Network network(GpuArchitecture architecture, BytesPerSecond intra, bool in_switch_reduction,
                BytesPerSecond copy = BytesPerSecond()) {
  Network made;
  made.architecture = architecture;
  made.intra = intra;
  made.in_switch_reduction = in_switch_reduction;
  made.copy = copy;
  made.inter = 50_GBps;
  made.inter_efficiency = 0.969;
  made.fabric_latency = 3_us;
  return made;
}
const Network h100 = network(GpuArchitecture::hopper, 450_GBps, true, 1005_GBps);
const Network b200 = network(GpuArchitecture::blackwell, 900_GBps, true, 2400_GBps);
const Network a100 = network(GpuArchitecture::ampere, 300_GBps, false, 612_GBps);
Network l40s() {
  Network made = network(GpuArchitecture::ada, 31.5_GBps, false, 260_GBps);
  made.link = GpuLink::pcie;
  return made;
}

Seconds time(const Network& on, CollectiveOp op, std::int64_t ranks, Bytes size,
             Precision dtype = Precision::bf16, std::int64_t stride = 1) {
  return collective_time({op, GroupKind::data, {ranks, stride}, size, dtype}, on);
}

// --- published points ---------------------------------------------------------------------------

struct Point {
  const char* source;
  Network on;
  CollectiveOp op;
  std::int64_t ranks;
  Bytes size;
  Seconds measured;
  double within;
  Precision dtype = Precision::bf16;
};

TEST(Collective, MeetsPublishedTimes) {
  const auto all_reduce = CollectiveOp::all_reduce;
  const char* dgxc = "NVIDIA/dgxc-benchmarking@841f546, nccl/README.md";
  const char* stas = "stas00/ml-engineering@744d01e, network chapter";
  const char* aic = "ai-dynamo/aiconfigurator@095f58a, nccl-tests tables";
  const Point points[] = {
      {dgxc, h100, all_reduce, 8, 1_MiB, 27.4_us, 0.25},
      {dgxc, h100, all_reduce, 8, 4_MiB, 54.2_us, 0.25},
      {dgxc, h100, all_reduce, 8, 8_MiB, 83.0_us, 0.25},
      {dgxc, h100, all_reduce, 8, 128_MiB, 586.4_us, 0.10},
      {dgxc, h100, all_reduce, 8, 1_GiB, 4.029_ms, 0.10},
      {dgxc, h100, all_reduce, 8, 16_GiB, 62.648_ms, 0.10},
      {stas, h100, all_reduce, 8, 16_GiB, 62.341_ms, 0.10},  // H200
      {stas, a100, all_reduce, 8, 8_MiB, 133.5_us, 0.10},
      {stas, a100, all_reduce, 8, 1_GiB, 8.204_ms, 0.10},
      {stas, a100, all_reduce, 8, 16_GiB, 127.997_ms, 0.10},
      {stas, b200, all_reduce, 8, 16_GiB, 35.551_ms, 0.10},
      {aic, h100, all_reduce, 8, 1_KiB, 15.6_us, 0.10},
      {aic, h100, all_reduce, 2, 1_KiB, 6.4_us, 0.10},
      {aic, h100, all_reduce, 4, 512_MiB, 2305_us, 0.10},
      {aic, h100, all_reduce, 2, 512_MiB, 1676.6_us, 0.10},
      {aic, h100, all_reduce, 8, 512_MiB, 2111.4_us, 0.10},
      {aic, h100, all_reduce, 8, 512_MiB, 2667.8_us, 0.10, Precision::int8},
      {aic, h100, CollectiveOp::all_gather, 8, 1_KiB, 10.4_us, 0.10},
      {aic, h100, CollectiveOp::all_gather, 8, 1_MiB, 17.1_us, 0.15},
      {aic, h100, CollectiveOp::all_gather, 8, 512_MiB, 1401.5_us, 0.10},
      {aic, h100, CollectiveOp::all_gather, 2, 512_MiB, 1042.1_us, 0.10},
      {aic, h100, CollectiveOp::reduce_scatter, 8, 512_MiB, 1401.6_us, 0.10},
      {aic, h100, CollectiveOp::all_to_all, 8, 8_MiB, 41.4_us, 0.25},
      {aic, h100, CollectiveOp::all_to_all, 8, 512_MiB, 1480.7_us, 0.10},
      {aic, a100, all_reduce, 8, 1_KiB, 21.8_us, 0.10},
      {aic, a100, all_reduce, 4, 1_KiB, 13.9_us, 0.10},
      {aic, a100, all_reduce, 8, 512_MiB, 4225.9_us, 0.10},
      {aic, a100, CollectiveOp::all_gather, 8, 512_MiB, 2288_us, 0.10},
      {aic, a100, CollectiveOp::reduce_scatter, 8, 512_MiB, 2207.1_us, 0.10},
      {aic, l40s(), all_reduce, 2, 512_MiB, 26.7_ms, 0.10},
      {aic, l40s(), all_reduce, 2, 256_KiB, 30.7_us, 0.15},
      // between nodes of eight
      {stas, b200, all_reduce, 32, 16_GiB, 87.182_ms, 0.05},
      {stas, b200, all_reduce, 32, 1_GiB, 5.747_ms, 0.05},
      {"8x400 Gb/s InfiniBand, nccl-tests of two H100 nodes", h100, all_reduce, 16,
       Bytes(4294967296), 20.528_ms, 0.25},
      {"8x400 Gb/s RoCE, nccl-tests of two H200 nodes", h100, all_reduce, 16, 16_GiB, 66.327_ms,
       0.10},
      {"NVIDIA/nccl issue 1218, 32 H100 nodes", h100, all_reduce, 256, 2_GiB, 12.583_ms, 0.20},
  };
  for (const Point& point : points) {
    const double model = time(point.on, point.op, point.ranks, point.size, point.dtype).value();
    EXPECT_NEAR(model / point.measured.value(), 1, point.within)
        << point.source << ": " << name_of(point.op) << " of " << point.ranks << " ranks, "
        << point.size.value() << " bytes";
  }
}

// --- laws ---------------------------------------------------------------------------------------

TEST(Collective, OneRankOrNothingToSendTakesNoTime) {
  EXPECT_EQ(time(h100, CollectiveOp::all_reduce, 1, 1_GB), Seconds());
  EXPECT_EQ(time(h100, CollectiveOp::all_reduce, 8, Bytes()), Seconds());
}

TEST(Collective, MoreBytesNeverTakeLessTime) {
  for (const Network& on : {h100, b200, a100, l40s()})
    for (const CollectiveOp op : all_ops)
      for (const std::int64_t ranks : {2, 4, 8, 16, 128}) {
        Seconds before;
        for (double size = 8; size < 1e11; size *= 1.5) {
          const Seconds now = time(on, op, ranks, Bytes(size));
          EXPECT_GE(now, before);
          before = now;
        }
      }
}

TEST(Collective, FasterLinksAndNicsNeverHurt) {
  for (const CollectiveOp op : all_ops)
    for (const std::int64_t ranks : {2, 8, 16, 128})
      for (double size = 1e3; size < 1e10; size *= 30) {
        Network faster = h100;
        const Seconds before = time(h100, op, ranks, Bytes(size));
        faster.intra *= 2;
        EXPECT_LE(time(faster, op, ranks, Bytes(size)), before);
        faster.inter *= 2;
        EXPECT_LE(time(faster, op, ranks, Bytes(size)), before);
      }
}

// What a rank must receive cannot come faster than its links (all-reduce: even with the switch's
// help it sends the vector once), nor what a node must receive faster than its NICs.
TEST(Collective, NothingBeatsTheLineRate) {
  for (const Network& on : {h100, b200, a100, l40s()})
    for (const CollectiveOp op : all_ops)
      for (const std::int64_t ranks : {2, 4, 8, 16, 128})
        for (double size = 1e3; size < 1e11; size *= 10) {
          const auto n = static_cast<double>(ranks);
          const double share =
              op == CollectiveOp::all_reduce || op == CollectiveOp::broadcast ? 1 : (n - 1) / n;
          const Seconds now = time(on, op, ranks, Bytes(size));
          EXPECT_GE(now, ranks <= 8 ? Bytes(size) * share / on.intra
                                    : Bytes(size) * (n - 8) / n / 8 / on.inter);
        }
}

TEST(Collective, ScatterThenGatherIsAnAllReduce) {
  Network ring = a100;
  ring.copy = BytesPerSecond();
  for (const std::int64_t ranks : {2, 4, 8, 64})
    for (double size = 1e6; size < 1e12; size *= 10) {
      const Seconds both = time(ring, CollectiveOp::reduce_scatter, ranks, Bytes(size)) +
                           time(ring, CollectiveOp::all_gather, ranks, Bytes(size));
      const Seconds once = time(ring, CollectiveOp::all_reduce, ranks, Bytes(size));
      EXPECT_GE(both, once * (1 - 1e-12));
      if (size > 1e11) {
        EXPECT_NEAR(both / once, 1, 0.02);
      }
    }
}

TEST(Collective, TheSwitchReducesFloatsOfMoreThanFourRanks) {
  const auto all_reduce = CollectiveOp::all_reduce;
  Network without = h100;
  without.in_switch_reduction = false;
  EXPECT_LT(time(h100, all_reduce, 8, 1_GB), time(without, all_reduce, 8, 1_GB) * 0.8);
  EXPECT_EQ(time(h100, all_reduce, 4, 1_GB), time(without, all_reduce, 4, 1_GB));
  EXPECT_EQ(time(h100, all_reduce, 8, 1_GB, Precision::int8),
            time(without, all_reduce, 8, 1_GB, Precision::int8));
}

TEST(Collective, OneRankANodeHasOneNic) {
  const Seconds spread = time(h100, CollectiveOp::all_gather, 16, 10_GB, Precision::bf16, 8);
  const Seconds packed = time(h100, CollectiveOp::all_gather, 16, 10_GB);
  EXPECT_NEAR(spread.value(), 10e9 * 15 / 16 / (50e9 * 0.969), 0.01);
  EXPECT_GT(spread, packed * 6);
}

TEST(Collective, OversubscriptionActsBeyondALeaf) {
  Network thin = h100;
  thin.oversubscription = 2;
  thin.nodes_per_leaf = 4;
  const auto gather = CollectiveOp::all_gather;
  EXPECT_EQ(time(thin, gather, 32, 10_GB), time(h100, gather, 32, 10_GB));
  const double halved = 2 * 10e9 * 63 / 64 / 8 / (50e9 * 0.969);
  EXPECT_NEAR(time(thin, gather, 64, 10_GB).value() / halved, 1, 0.02);
}

TEST(Collective, TheCatalogDescribesTheNetwork) {
  const Provenance source{Evidence::datasheet, "s1", "", ""};
  Cluster cluster;
  cluster.gpu.architecture = GpuArchitecture::hopper;
  cluster.gpu.memory.bandwidth = Fact<BytesPerSecond>(3.35_TBps, source);
  cluster.gpu.nvlink.emplace();
  cluster.gpu.nvlink->bandwidth = Fact<BytesPerSecond>(450_GBps, source);
  cluster.node.link = GpuLink::nvlink;
  cluster.node.nvls = true;
  cluster.gpus = cluster.gpus_per_node = 8;
  const Network alone = network_of(cluster);
  EXPECT_EQ(time(alone, CollectiveOp::all_reduce, 8, 1_GB),
            time(h100, CollectiveOp::all_reduce, 8, 1_GB));
  EXPECT_THROW(time(alone, CollectiveOp::all_reduce, 16, 1_GB), ContractError);

  cluster.gpus = 64;
  cluster.fabric.emplace();
  cluster.fabric->rate = Fact<BytesPerSecond>(400_Gbps, source);
  cluster.fabric->efficiency = Fact<double>(0.969, source);
  cluster.fabric->latency = Fact<Seconds>(3_us, source);
  const Network joined = network_of(cluster);
  EXPECT_EQ(joined.inter, 50_GBps);
  EXPECT_EQ(joined.nodes_per_leaf, 4);
  EXPECT_EQ(time(joined, CollectiveOp::all_gather, 64, 1_GB),
            time(h100, CollectiveOp::all_gather, 64, 1_GB));
}

TEST(Collective, SmallMessagesOverManyNodesClimbATree) {
  const Seconds tree = time(h100, CollectiveOp::all_reduce, 512, 8_KB);
  EXPECT_LT(tree, time(h100, CollectiveOp::all_gather, 512, 8_KB));
  EXPECT_LT(tree, 150_us);
}

// 16 ranks on two nodes, 8 copies a token: half of them stay; the other half is 4 copies, which
// travel as one but for the 1 in 256 tokens that has none there.
TEST(Collective, TokensTravelOnceToANode) {
  const Bytes size = 512_MiB;
  const auto exchange = [&](std::int64_t copies, std::int64_t ranks) {
    return collective_time(
        {CollectiveOp::all_to_all, GroupKind::expert, {ranks, 1}, size, Precision::bf16, copies},
        h100);
  };
  const double gain = exchange(1, 16) / exchange(8, 16);
  EXPECT_NEAR(gain, 4, 0.4);
  EXPECT_EQ(exchange(8, 8), exchange(1, 8));  // within a node each copy is its own
  EXPECT_LT(exchange(8, 64), exchange(2, 64));
  EXPECT_LT(exchange(2, 64), exchange(1, 64));
}

}  // namespace
}  // namespace orrery

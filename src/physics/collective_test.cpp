#include "physics/collective.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>

#include "catalog/catalog.h"
#include "catalog/kernel_sets.h"

namespace orrery {
namespace {

using namespace literals;

constexpr NcclOp all_ops[] = {NcclOp::all_reduce, NcclOp::all_gather, NcclOp::reduce_scatter,
                              NcclOp::all_to_all, NcclOp::broadcast,  NcclOp::send_recv};

struct Machine {
  CollectiveParameters parameters;
  Interconnect on;
};

Machine machine(const std::string& gpu, const std::string& variant, BytesPerSecond intra) {
  static const KernelSets sets = KernelSets::load(default_data_dir());
  static const Catalog catalog = Catalog::load(default_data_dir());
  const Gpu card = catalog.gpu(gpu);
  const FoundSet found = sets.find("collective", variant, "nccl", card);
  Machine made;
  made.parameters = parameters_from<CollectiveParameters>(*found.set);
  made.on.architecture = card.architecture;
  made.on.link = variant == "pcie" ? GpuLink::pcie : GpuLink::nvlink;
  made.on.intra = intra;
  made.on.switch_reduces = card.architecture >= GpuArchitecture::hopper;
  made.on.inter = 48.5_GBps;
  made.on.fabric_latency = 3_us;
  return made;
}
const Machine& h100() {
  static const Machine made = machine("h100-sxm", "nvlink", 450_GBps);
  return made;
}
const Machine& a100() {
  static const Machine made = machine("a100-sxm-80gb", "nvlink", 300_GBps);
  return made;
}
const Machine& b200() {
  static const Machine made = machine("b200", "nvlink", 900_GBps);
  return made;
}
const Machine& l40s() {
  static const Machine made = machine("l40s", "pcie", 31.5_GBps);
  return made;
}

CollectiveShape shape(const Machine& on, NcclOp op, std::int64_t ranks, Bytes size,
                      Precision dtype = Precision::fp16) {
  const std::int64_t local = std::min<std::int64_t>(ranks, 8);
  return {.op = op,
          .ranks = ranks,
          .local = local,
          .nodes = ranks / local,
          .size = size,
          .dtype = dtype,
          .on = on.on};
}
Seconds time(const Machine& on, NcclOp op, std::int64_t ranks, Bytes size,
             Precision dtype = Precision::fp16) {
  return collective_seconds(shape(on, op, ranks, size, dtype), on.parameters);
}

TEST(Collective, MeetsTimesThatNoFitSaw) {
  const auto reduce = NcclOp::all_reduce;
  // NVIDIA/dgxc-benchmarking@841f546, nccl/README.md: DGX H100, among them the ramp between the
  // sizes of the tables.
  for (const auto& [size, us] : {std::pair{1_MiB, 27.37},
                                 {4_MiB, 54.19},
                                 {8_MiB, 83.04},
                                 {16_MiB, 123.8},
                                 {32_MiB, 199.3},
                                 {64_MiB, 324.7},
                                 {128_MiB, 586.4},
                                 {1_GiB, 4029.4},
                                 {16_GiB, 62648.0}}) {
    EXPECT_NEAR(time(h100(), reduce, 8, size).value() * 1e6 / us, 1, 0.13) << size.value();
  }
  // stas00/ml-engineering@744d01e: A100, B200, and H200 without the switch's sums.
  EXPECT_NEAR(time(a100(), reduce, 8, 16_GiB).value() / 128e-3, 1, 0.07);
  EXPECT_NEAR(time(b200(), reduce, 8, 16_GiB).value() / 35.55e-3, 1, 0.05);
  EXPECT_NEAR(time(h100(), reduce, 8, 16_GiB, Precision::int8).value() / 81.78e-3, 1, 0.05);
  // Two H200 nodes of 8 x 400 Gb/s RoCE.
  EXPECT_NEAR(time(h100(), reduce, 16, 16_GiB, Precision::fp32).value() / 66.3e-3, 1, 0.10);
}

TEST(Collective, OneRankOrNothingToSendTakesNoTime) {
  EXPECT_EQ(time(h100(), NcclOp::all_reduce, 1, 1_GB), Seconds());
  EXPECT_EQ(time(h100(), NcclOp::all_reduce, 8, Bytes()), Seconds());
}

RC_GTEST_PROP(Collective, MoreBytesNeverTakeLessTime, ()) {
  const auto op = *rc::gen::elementOf(std::vector<NcclOp>(std::begin(all_ops), std::end(all_ops)));
  const auto ranks = *rc::gen::element<std::int64_t>(2, 3, 4, 5, 8, 16, 64, 1024);
  const auto dtype = *rc::gen::element(Precision::fp16, Precision::int8, Precision::fp32);
  const auto size = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 36);
  const auto more = *rc::gen::inRange<std::int64_t>(1, size + 1);
  for (const Machine* on : {&h100(), &a100(), &b200(), &l40s()}) {
    const double less = time(*on, op, ranks, Bytes(static_cast<double>(size)), dtype).value();
    RC_ASSERT(time(*on, op, ranks, Bytes(static_cast<double>(size + more)), dtype).value() >=
              less * (1 - 1e-12));
  }
}

TEST(Collective, GrowsThroughEverySwitchOfProtocol) {
  for (const Machine* on : {&h100(), &a100(), &b200(), &l40s()}) {
    for (const NcclOp op : all_ops) {
      for (const std::int64_t ranks : {2, 4, 8}) {
        double before = 0;
        for (double size = 8; size < 1e9; size *= 1.02) {
          const double now = time(*on, op, ranks, Bytes(size)).value();
          ASSERT_GE(now, before * (1 - 1e-12)) << to_text(op) << " " << ranks << " " << size;
          before = now;
        }
      }
    }
  }
}

// What a rank must receive cannot come faster than its links (of an all-reduce, even with the
// switch's help, the vector once), nor what a node must receive faster than its NICs.
TEST(Collective, NothingBeatsTheLineRate) {
  for (const Machine* on : {&h100(), &a100(), &b200(), &l40s()}) {
    for (const NcclOp op : all_ops) {
      for (const std::int64_t ranks : {2, 4, 8, 16, 128}) {
        const auto n = static_cast<double>(ranks);
        const bool whole =
            op == NcclOp::all_reduce || op == NcclOp::broadcast || op == NcclOp::send_recv;
        for (double size = 1e3; size < 1e12; size *= 3) {
          const Seconds now = time(*on, op, ranks, Bytes(size));
          EXPECT_GE(now, ranks <= 8 ? Bytes(size) * (whole ? 1 : (n - 1) / n) / on->on.intra
                                    : Bytes(size) * (n - 8) / n / 8 / on->on.inter)
              << to_text(op) << " " << ranks << " " << size;
        }
      }
    }
  }
}

TEST(Collective, MoreRanksNeverReduceFasterByRings) {
  for (const Machine* on : {&h100(), &a100(), &l40s()}) {
    for (double size = 64e6; size < 1e12; size *= 4) {
      Seconds before;
      for (const std::int64_t ranks : {2, 3, 4, 6, 8}) {
        const Seconds now = time(*on, NcclOp::all_reduce, ranks, Bytes(size), Precision::int8);
        EXPECT_GE(now, before) << ranks << " " << size;
        before = now;
      }
    }
  }
}

TEST(Collective, AnAllReduceIsNoFasterThanEitherOfItsHalves) {
  for (const Machine* on : {&h100(), &a100()}) {
    for (double size = 16e6; size < 1e12; size *= 4) {
      const Seconds reduce = time(*on, NcclOp::all_reduce, 8, Bytes(size), Precision::int8);
      EXPECT_GT(reduce, time(*on, NcclOp::all_gather, 8, Bytes(size)));
      EXPECT_GT(reduce, time(*on, NcclOp::reduce_scatter, 8, Bytes(size)));
    }
  }
}

TEST(Collective, TheSwitchReducesFloatsOfMoreThanFourRanks) {
  Machine without = h100();
  without.on.switch_reduces = false;
  const auto reduce = NcclOp::all_reduce;
  EXPECT_LT(time(h100(), reduce, 8, 1_GB), time(without, reduce, 8, 1_GB) * 0.85);
  EXPECT_EQ(time(h100(), reduce, 4, 1_GB), time(without, reduce, 4, 1_GB));
  for (const Precision dtype : {Precision::int8, Precision::fp8}) {
    EXPECT_EQ(time(h100(), reduce, 8, 1_GB, dtype), time(without, reduce, 8, 1_GB, dtype));
  }
}

TEST(Collective, IsFiniteForEverySize) {
  for (const Machine* on : {&h100(), &a100(), &b200(), &l40s()}) {
    for (const NcclOp op : all_ops) {
      for (const std::int64_t ranks : {2, 8, 72, 4096, 100'000}) {
        for (const double size : {1.0, 1e3, 1e6, 1e9, 1099511627776.0}) {
          const double now = time(*on, op, ranks, Bytes(size)).value();
          EXPECT_TRUE(std::isfinite(now) && now > 0) << to_text(op) << " " << ranks;
        }
      }
    }
  }
}

TEST(Collective, SaysWhatIsExtrapolated) {
  const Device device;
  const auto asked = [&](std::int64_t ranks) {
    return collective_time(shape(h100(), NcclOp::all_gather, ranks, 1_GB), h100().parameters,
                           device);
  };
  EXPECT_FALSE(asked(8).extrapolated);
  EXPECT_FALSE(asked(16).extrapolated);
  EXPECT_TRUE(asked(64).extrapolated);
}

// --- NCCL's choice ------------------------------------------------------------------------------

// By hand from tuning.cc, two A100: LL 7.8 us and 87.7 GB/s, Simple 15.2 us and 240 GB/s cross at
// 7.4 us / (1/87.7 - 1/240) = 1.02 MB; LL128 starts with 17.8 us and never wins.
TEST(NcclPlan, TwoA100LeaveLLAtAMegabyte) {
  const NcclPlan plan({.ranks = 2, .architecture = GpuArchitecture::ampere, .rate = 300_GBps});
  EXPECT_NEAR(plan.end(Protocol::ll), 1.023e6, 1e3);
  EXPECT_EQ(plan.end(Protocol::ll128), 0);
  EXPECT_EQ(plan.at(1.0e6), Protocol::ll);
  EXPECT_EQ(plan.at(1.1e6), Protocol::simple);
}

// Eight: 15 us and 50.1 GB/s, 40.6 us and 126 GB/s, 56 us and 137 GB/s.
TEST(NcclPlan, EightA100TakeLL128Between) {
  const NcclPlan plan({.ranks = 8, .architecture = GpuArchitecture::ampere, .rate = 300_GBps});
  EXPECT_NEAR(plan.end(Protocol::ll), 2.13e6, 2e4);
  EXPECT_NEAR(plan.end(Protocol::ll128), 24.3e6, 3e5);
  EXPECT_EQ(plan.at(4e6), Protocol::ll128);
  EXPECT_EQ(plan.at(32e6), Protocol::simple);
}

TEST(NcclPlan, NvlsIsForAllReduceAndPcieHasNoLL128) {
  PlannedGroup group = {.ranks = 8, .rate = 450_GBps, .in_switch = true};
  EXPECT_EQ(NcclPlan(group).at(1e9), Protocol::in_switch);
  group.op = NcclOp::all_gather;
  EXPECT_EQ(NcclPlan(group).at(1e9), Protocol::simple);
  group.link = GpuLink::pcie;
  EXPECT_EQ(NcclPlan(group).end(Protocol::ll128), 0);
}

}  // namespace
}  // namespace orrery

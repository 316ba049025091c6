#include <gmock/gmock.h>

#include "core/error.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

using namespace literals;

KernelTable read(const std::string& rows) {
  const std::string head =
      "gpu,op,gpus,nodes,gpus_per_node,fabric,bytes,time_us,busbw_gbps,source,library,dtype,mode\n";
  return *kernel_table_from_csv(parse_csv(head + rows, "t.csv"), "t.csv");
}
KernelRow one(const std::string& row) {
  const KernelTable table = read(row + "\n");
  EXPECT_EQ(table.rows.size(), 1u);
  return table.rows.at(0);
}
std::string reason(const std::string& row) {
  const KernelTable table = read(row + "\n");
  EXPECT_EQ(table.skipped.size(), 1u);
  return table.skipped.at(0).reason;
}

TEST(CollectiveTable, ReadsWhatJoinsTheGpus) {
  const KernelRow row = one(
      "H100-SXM5-80GB,all_reduce,8,1,8,NVLink4 NVSwitch,1048576,25.4,,aic@1,NCCL,int8,nccl-tests");
  EXPECT_EQ(row.op, "collective");
  EXPECT_EQ(row.library, "nccl");
  EXPECT_EQ(row.variant, "nvlink");
  EXPECT_TRUE(row.fitted);
  const auto& shape = std::get<CollectiveShape>(row.shape);
  EXPECT_EQ(shape.op, NcclOp::all_reduce);
  EXPECT_EQ(shape.local, 8);
  EXPECT_EQ(shape.dtype, Precision::int8);
  EXPECT_EQ(shape.on.intra, 450_GBps);
  EXPECT_TRUE(shape.on.switch_reduces);
}

TEST(CollectiveTable, TwoNodesNeedAFabricAndAreNotFitted) {
  const KernelRow row =
      one("A100-SXM4-40GB,all_reduce,16,2,8,OCI RoCE RDMA (16 VFs),8,36,,oci,NCCL,fp32,nccl-tests");
  EXPECT_FALSE(row.fitted);
  EXPECT_NEAR(std::get<CollectiveShape>(row.shape).on.inter.value(), 24.2e9, 0.1e9);
  EXPECT_EQ(reason("A100-80GB,all_reduce,16,2,8,inter-node (fabric not stated),8,36,,v,NCCL,fp16,"),
            "the fabric's rate is not stated");
}

TEST(CollectiveTable, FourCardsWithBridgesMeetOverPcie) {
  const auto link = [](const std::string& gpus) {
    return one("A100-80GB,all_reduce," + gpus + ",1," + gpus +
               ",\"pairwise NVLink bridge, rest PCIe\",1024,36,,vidur@1,torch profiler,fp16,")
        .variant;
  };
  EXPECT_EQ(link("2"), "nvlink");
  EXPECT_EQ(link("4"), "pcie");
}

TEST(CollectiveTable, NeighbouringCurvesShowAFitOtherSizes) {
  const auto seen = [](const std::string& gpus, const std::string& bytes) {
    return one("L40S,all_gather," + gpus + ",1," + gpus + ",PCIe," + bytes +
               ",36,,aic@1,NCCL,fp16,")
               .family %
           2;
  };
  EXPECT_NE(seen("2", "1024"), seen("2", "2048"));
  EXPECT_NE(seen("2", "1024"), seen("4", "1024"));
}

TEST(CollectiveTable, AnEnginesKernelEndsWhereItCallsNccl) {
  const auto row = [](const std::string& bytes) {
    return one("H100-SXM5-80GB,all_reduce,8,1,8,NVLink4," + bytes +
               ",36,,aic@1,vllm 0.24.0 all-reduce (vLLM_custom_eager),bf16,vllm_eager");
  };
  EXPECT_EQ(row("1024").op, "all-reduce-custom");
  EXPECT_EQ(row("1024").variant, "eager");
  EXPECT_EQ(row("134217728").op, "collective");
  EXPECT_FALSE(row("134217728").fitted);
  EXPECT_TRUE(std::get<CollectiveShape>(row("134217728").shape).copied);
}

TEST(CollectiveTable, ReadsDeepEpFromItsWords) {
  const KernelRow row =
      one("H100-SXM5-80GB,ep_combine,8,1,8,NVLink4,,34.9,,aic@1,\"DeepEP normal, 4 SMs\",,"
          "\"12 tokens/rank, hidden 2048, top-8, experts 128\"");
  EXPECT_EQ(row.variant, "combine normal");
  const auto& shape = std::get<ExpertExchangeShape>(row.shape);
  EXPECT_EQ(shape.tokens, 12);
  EXPECT_EQ(shape.hidden, 2048);
  EXPECT_EQ(shape.top_k, 8);
  EXPECT_EQ(shape.experts, 128);
  EXPECT_EQ(shape.sms, 4);
  EXPECT_EQ(reason("H800-SXM5,ep_combine,8,1,8,NVLink,,,158,d,DeepEP V1 normal kernels,,x"),
            "a rate without a time");
  EXPECT_EQ(reason("H800-SXM5,ep_combine,8,1,8,NVLink,,9,,d,DeepEP V1 normal kernels,,x"),
            "its shape is not stated");
}

TEST(CollectiveTable, SkipsWhatHasNoModelAndRefusesNonsense) {
  EXPECT_EQ(reason("H100,host_to_device,1,1,1,PCIe,8,3,,x,nvbandwidth,,"),
            "no model of host_to_device");
  EXPECT_THROW(read("H100,all_reduce,8,1,8,NVLink4,-8,3,,x,NCCL,,\n"), InputError);
  EXPECT_THROW(read("H100,all_reduce,1,1,8,NVLink4,8,3,,x,NCCL,,\n"), InputError);
}

}  // namespace
}  // namespace orrery

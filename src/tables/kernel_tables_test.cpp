#include "tables/kernel_tables.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace orrery {
namespace {

std::optional<KernelTable> table_of(const std::string& text) {
  return kernel_table_from_csv(parse_csv(text, "t.csv"), "t.csv");
}

TEST(KernelTables, AreToldApartByTheirColumns) {
  EXPECT_FALSE(table_of("id,gpu\n1,H100\n"));
  const auto gemm = table_of(
      "gpu,dtype,m,n,k,batch,time_us,library,source\n"
      "H100-SXM5-80GB,bf16,1,2,3,1,10,trtllm 1.3.0rc20 (torch_flow),aic\n"
      "H100-SXM5-80GB,fp2,1,2,3,1,10,x,aic\n");
  ASSERT_TRUE(gemm);
  EXPECT_EQ(gemm->kind, "gemm");
  ASSERT_EQ(gemm->rows.size(), 1u);
  EXPECT_EQ(gemm->rows[0].library, "tensorrt-llm");
  EXPECT_EQ(gemm->rows[0].gpu, "h100-sxm");
  EXPECT_DOUBLE_EQ(gemm->rows[0].measured.value(), 10e-6);
  ASSERT_EQ(gemm->skipped.size(), 1u);
  EXPECT_EQ(gemm->skipped[0].reason, "no model of fp2");
}

TEST(KernelTables, RefuseCellsThatAreNoNumbers) {
  EXPECT_THROW(table_of("gpu,dtype,m,n,k,time_us,library,source\nH100,bf16,1,-2,3,10,x,y\n"),
               InputError);
}

}  // namespace
}  // namespace orrery

#include <gmock/gmock.h>

#include "core/error.h"
#include "tables/kernel_tables.h"

namespace orrery {
namespace {

using testing::HasSubstr;

KernelTable read(const std::string& rows) {
  const std::string head =
      "gpu,dtype,phase,batch,heads,kv_heads,head_dim,q_len,kv_len,causal,direction,time_us,"
      "library,source,kv_dtype,window\n";
  return *kernel_table_from_csv(parse_csv(head + rows, "t.csv"), "t.csv");
}

TEST(AttentionTable, ReadsEnginesRows) {
  const KernelTable table = read(
      "H100-SXM5-80GB,bf16,decode,4,32,8,128,1,4096,1,fwd,20,vllm 0.24.0 (vllm_flash_attn_fa3),aic,"
      "fp8,1024\n"
      "L40S,fp8,prefill,4,32,8,128,512,512,1,fwd,20,vllm 0.24.0 (vllm_triton_attn),aic,fp8,\n"
      "H100-SXM5,bf16,prefill,4,16,16,72,512,512,0,fwd,20,trtllm 1.3.0rc20 encoder/ViT,aic,,\n");
  EXPECT_EQ(table.kind, "attention");
  ASSERT_EQ(table.rows.size(), 3u);
  const KernelRow& row = table.rows[0];
  EXPECT_EQ(row.op, "attention-decode");
  EXPECT_EQ(row.variant, "bf16 fp8-cache");
  EXPECT_EQ(row.library, "vllm");
  EXPECT_EQ(row.gpu, "h100-sxm");
  const auto& shape = std::get<AttentionShape>(row.shape);
  EXPECT_EQ(shape.window, 1024);
  EXPECT_EQ(shape.kernels, AttentionKernels::flash3);
  EXPECT_TRUE(shape.writes_cache);
  EXPECT_EQ(table.rows[1].library, "vllm-triton");
  EXPECT_EQ(table.rows[1].variant, "fp8");
  EXPECT_EQ(table.rows[2].op, "attention-encoder");
  EXPECT_FALSE(std::get<AttentionShape>(table.rows[2].shape).writes_cache);
}

TEST(AttentionTable, ReadsThePapersRows) {
  const KernelTable table = read(
      "H100-SXM5-80GB,fp16,prefill,16,32,32,64,1024,1024,0,bwd,20,FlashAttention-3 (bar "
      "label),p,,\n"
      "H100-SXM5-80GB,fp16,prefill,16,32,32,64,1024,1024,0,fwd,20,PyTorch standard "
      "attention,p,,\n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].op, "attention-backward");
  EXPECT_EQ(table.rows[0].library, "flash-attention-3");
  EXPECT_EQ(table.rows[0].variant, "bf16");
  ASSERT_EQ(table.skipped.size(), 1u);
  EXPECT_THAT(table.skipped[0].reason, HasSubstr("not fused"));
}

TEST(AttentionTable, ShowsNoFitWhatIsOffTheFastPath) {
  const KernelTable table = read(
      "A100-SXM4-80GB,bf16,decode,4,64,1,128,1,4096,1,fwd,20,trtllm 1.0.0,aic,bf16,\n"
      "A100-SXM4-80GB,bf16,decode,4,64,8,128,1,1024,1,fwd,20,trtllm 1.0.0,aic,bf16,\n");
  EXPECT_FALSE(table.rows[0].fitted);
  EXPECT_TRUE(table.rows[1].fitted);
}

TEST(AttentionTable, RefusesImpossibleShapes) {
  const std::string end = ",1,fwd,20,vllm 0.24.0,aic,bf16,\n";
  EXPECT_THROW(read("H100,bf16,prefill,1,32,8,128,512,256" + end), InputError);
  EXPECT_THROW(read("H100,bf16,prefill,1,32,5,128,512,512" + end), InputError);
  EXPECT_THROW(read("H100,bf16,prefill,1,32,-8,128,512,512" + end), InputError);
}

}  // namespace
}  // namespace orrery

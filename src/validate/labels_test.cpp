#include "validate/labels.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Labels, GpusInTheWordsOfManySources) {
  EXPECT_EQ(gpu_named("H100-SXM-80GB"), "h100-sxm");
  EXPECT_EQ(gpu_named("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(gpu_named("H100-SXM-96GB-HBM2e-500W"), "h100-sxm-96gb-500w");
  EXPECT_EQ(gpu_named("h100_pcie 80 GB"), "h100-pcie");
  EXPECT_EQ(gpu_named("H100 NVL-94GB"), "h100-nvl");
  EXPECT_EQ(gpu_named("H200-SXM-141GB"), "h200-sxm");
  EXPECT_EQ(gpu_named("H800-SXM-80GB"), "h800-sxm");
  EXPECT_EQ(gpu_named("H20-96GB"), "h20");
  EXPECT_EQ(gpu_named("A100-SXM-40GB (DGX-A100)"), "a100-sxm-40gb");
  EXPECT_EQ(gpu_named("A100-SXM4-80GB"), "a100-sxm-80gb");
  EXPECT_EQ(gpu_named("A100"), "a100-sxm-80gb");
  EXPECT_EQ(gpu_named("A100-PCIe-40GB"), "a100-pcie-40gb");
  EXPECT_EQ(gpu_named("A800-SXM-80GB"), "a800-sxm");
  EXPECT_EQ(gpu_named("V100-SXM2-16GB"), "v100-sxm2-16gb");
  EXPECT_EQ(gpu_named("V100-SXM3-32GB (DGX-2)"), "v100-sxm3-32gb");
  EXPECT_EQ(gpu_named("RTX-4090-24GB"), "rtx-4090");
  EXPECT_EQ(gpu_named("GeForce RTX 3090"), "rtx-3090");
  EXPECT_EQ(gpu_named("RTX-A6000-Ada-48GB"), "rtx-a6000-ada");
  EXPECT_EQ(gpu_named("L40S-48GB"), "l40s");
  EXPECT_EQ(gpu_named("L4"), "l4");
  EXPECT_EQ(gpu_named("B200-SXM-180GB"), "b200");
  EXPECT_EQ(gpu_named("GH200-96GB"), "gh200");
  EXPECT_EQ(gpu_named("GB200 NVL72"), "gb200");
  EXPECT_EQ(gpu_named("MI300X (192 GB)"), "mi300x-192-gb");
  EXPECT_EQ(gpu_named(""), "");
}

TEST(Labels, Frameworks) {
  EXPECT_EQ(framework_named("Megatron-LM (2020)"), "megatron-2021");
  EXPECT_EQ(framework_named("Megatron-Core r0.8.0"), "megatron");
  EXPECT_EQ(framework_named("Megatron-LM (TE 2.11)"), "megatron");
  EXPECT_EQ(framework_named("Megatron + DeepSpeed ZeRO"), "megatron-deepspeed");
  EXPECT_EQ(framework_named("NeMo/Megatron-Core"), "nemo");
  EXPECT_EQ(framework_named("Megatron-Bridge"), "megatron-bridge");
  EXPECT_EQ(framework_named("fsdp_qlora (PyTorch FSDP)"), "fsdp-qlora");
  EXPECT_EQ(framework_named("LitGPT"), "litgpt");
  EXPECT_EQ(framework_named("lit-gpt + FSDP + FlashAttention 2"), "fsdp");
  EXPECT_EQ(framework_named("MXNet NVIDIA Release 24.04 or PyTorch NVIDIA Release 24.04"), "nemo");
  EXPECT_EQ(framework_named("llm-foundry/Composer FSDP"), "llm-foundry");
  EXPECT_EQ(framework_named("DeepSpeed 0.14.2 / HF"), "deepspeed");
  EXPECT_EQ(framework_named("HF Trainer + DeepSpeed"), "deepspeed");
  EXPECT_EQ(framework_named("HF Trainer"), "hf");
  EXPECT_EQ(framework_named("PaxML (JAX) + TransformerEngine"), "jax");
  EXPECT_EQ(framework_named("lit-gpt + FSDP + FlashAttention 2"), "fsdp");
  EXPECT_EQ(framework_named("PyTorch (torch.compile, DDP)"), "ddp");
  EXPECT_EQ(framework_named("llm.c"), "ddp");
  EXPECT_EQ(framework_named("LiBai (OneFlow)"), std::nullopt);
}

TEST(Labels, Fabrics) {
  EXPECT_EQ(fabric_named("NVLink; 8x400 Gb/s InfiniBand (DGX H100 reference)", 8), "ndr400-rail");
  EXPECT_EQ(fabric_named("DGX SuperPOD (NVSwitch; 8x200 Gb/s IB)", 8), "hdr200");
  EXPECT_EQ(fabric_named("NVLink/NVSwitch; 8x200 Gb/s HDR InfiniBand per node", 8), "hdr200");
  EXPECT_EQ(fabric_named("RoCE 1600 Gb/s per node", 8), "roce-200");
  EXPECT_EQ(fabric_named("NVLink; 4x100 Gb/s RoCE per node", 8), "roce-4x100");
  EXPECT_EQ(fabric_named("NVLink; 4x Omni-Path 100 Gb/s per node (Jean Zay)", 4), "omnipath-4x100");
  EXPECT_EQ(fabric_named("NVLink; 400 Gb/s per GPU RDMA", 8), "roce-400");
  EXPECT_EQ(fabric_named("NVLink; 400 Gb/s RoCE per GPU, 24K-GPU Clos", 8), "roce-400");
  EXPECT_EQ(fabric_named("NVLink; CX-7 400 Gb/s per GPU", 8), "ndr400-rail");
  EXPECT_EQ(fabric_named("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR "
                         "400Gb/s, Ma",
                         8),
            "ndr400-rail");
  EXPECT_EQ(fabric_named("1x Ethernet 100Gb/Sec, 8x NVIDIA Quantum-2 CX7 InfiniBand (400Gb/s)", 8),
            "ndr400-rail");
  EXPECT_EQ(fabric_named("4x ConnectX-7 IB NDR 400Gb/Sec", 8), "hdr200");
  EXPECT_EQ(fabric_named("NVLink 400 GB/s class; 8x400 Gbps InfiniBand per node", 8),
            "ndr400-rail");
  EXPECT_EQ(fabric_named("NVLink 450 GB/s", 8), std::nullopt);
  EXPECT_EQ(fabric_named("EFA 4x100 Gb/s (p4d)", 8), "efa-p4d");
  EXPECT_EQ(fabric_named("ConnectX-6 25Gb/s Ethernet", 1), "ethernet-25");
  EXPECT_EQ(fabric_named("NVSwitch", 8), std::nullopt);
  EXPECT_EQ(fabric_named("", 8), std::nullopt);
}

TEST(Labels, ZeroStages) {
  const auto stage = [](std::string_view label) { return zero_named(label)->stage; };
  const auto ranks = [](std::string_view label) { return zero_named(label)->shard_ranks; };
  EXPECT_EQ(stage("3 (FSDP FULL_SHARD)"), 3);
  EXPECT_EQ(ranks("3 (FSDP FULL_SHARD)"), std::nullopt);
  EXPECT_EQ(stage("3 (FSDP2)"), 3);
  EXPECT_EQ(ranks("3 (FSDP2)"), std::nullopt);
  EXPECT_EQ(stage("1 (optimizer sharded over 8 GPUs)"), 1);
  EXPECT_EQ(ranks("1 (optimizer sharded over 8 GPUs)"), 8);
  EXPECT_EQ(ranks("1 (optimizer sharded over all DP)"), std::nullopt);
  EXPECT_EQ(ranks("3 (FSDP=128, DP elsewhere)"), 128);
  EXPECT_EQ(ranks("3 (FSDP 256)"), 256);
  EXPECT_EQ(stage("FSDP"), 3);
  EXPECT_EQ(stage("FSDP, weights not resharded after forward (ZeRO-2 like)"), 2);
  EXPECT_EQ(stage("0 (DDP mode)"), 0);
  EXPECT_EQ(stage("ZeRO-1"), 1);
  EXPECT_EQ(stage("DDP"), 0);
  EXPECT_EQ(zero_named("unclear"), std::nullopt);
  EXPECT_EQ(zero_named("ZeRO-9"), std::nullopt);
}

TEST(Labels, Recomputation) {
  EXPECT_EQ(recompute_named("full", "nemo", 32), "full");
  EXPECT_EQ(recompute_named("none", "nemo", 32), "none");
  EXPECT_EQ(recompute_named("selective (attention core)", "megatron", 32), "selective");
  EXPECT_EQ(recompute_named("selective (op)", "torchtitan", 32), "operators");
  EXPECT_EQ(recompute_named("selective", "torchtitan", 32), "operators");
  EXPECT_EQ(recompute_named("selective", "megatron", 32), "selective");
  EXPECT_EQ(recompute_named("selective (every 2nd layer)", "torchtitan", 33), "full:17");
  EXPECT_EQ(recompute_named("selective (minimal_flash)", "jax", 32), "none");
  EXPECT_EQ(recompute_named("perhaps", "jax", 32), std::nullopt);
}

}  // namespace
}  // namespace orrery

#include "validate/throughput.h"

#include <gtest/gtest.h>

#include "model/count.h"

namespace orrery {
namespace {

// 175B as in Narayanan et al. 2021: 96 layers of 12288, 51200 words, sequences of 2048.
Architecture gpt3() {
  Architecture model;
  model.layers = 96;
  model.hidden = 12288;
  model.heads = model.kv_heads = 96;
  model.head_dim = 128;
  model.ffn = 4 * 12288;
  model.vocab = 51200;
  return model;
}

Measurement row() {
  Measurement out;
  out.seq_len = 2048;
  return out;
}

double speed(const Measurement& row, Recompute recompute = Recompute::full) {
  return std::get<double>(measured_throughput(row, gpt3(), 8, 16, recompute, 1));
}
std::string reason(const Measurement& row) {
  return std::get<Skip>(measured_throughput(row, gpt3(), 8, 16, Recompute::full, 1)).reason;
}

TEST(Throughput, FullRecomputationCountsAsInThePaper) {
  // 96 B s L h^2 (1 + s / 6h + V / 16 L h), equation 3 of arXiv 2104.04473, for one token.
  const double h = 12288, L = 96, s = 2048, V = 51200;
  const double paper = 96 * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  EXPECT_NEAR(hardware_flop_per_token(gpt3(), 2048, Recompute::full, 1) / paper, 1, 1e-9);
  // Without recomputation the layers' part is 3/4 of that.
  const double none = hardware_flop_per_token(gpt3(), 2048, Recompute::none, 1);
  EXPECT_NEAR(none, 0.75 * paper + 6 * h * V / 4, 1e-6 * paper);
  const double half = hardware_flop_per_token(gpt3(), 2048, Recompute::full, 0.5);
  EXPECT_NEAR(half, (none + paper) / 2, 1e-6 * paper);
  EXPECT_NEAR(hardware_flop_per_token(gpt3(), 2048, Recompute::selective, 1), none + 4 * L * h * s,
              1e-6 * paper);
}

TEST(Throughput, WhatIsPrintedMostDirectlyComesFirst) {
  Measurement printed = row();
  printed.step_time_s = 2;
  EXPECT_DOUBLE_EQ(speed(printed), 16 * 2048 / (2.0 * 8));
  printed.tokens_per_s_per_gpu = 100;
  printed.hw_tflops_per_gpu = 1;
  EXPECT_DOUBLE_EQ(speed(printed), 100);
}

TEST(Throughput, RatesTurnBackByTheirConvention) {
  const double full = flop_per_token(gpt3(), 2048, FlopConvention::full_attention).value();
  const double causal = flop_per_token(gpt3(), 2048, FlopConvention::causal_attention).value();
  Measurement printed = row();
  printed.model_tflops_per_gpu = 150;
  printed.flops_convention = "model FLOPs, full attention";
  EXPECT_DOUBLE_EQ(speed(printed), 150e12 / full);
  printed.flops_convention = "model FLOPs (attention convention unverified)";
  EXPECT_DOUBLE_EQ(speed(printed), 150e12 / full);
  printed.flops_convention = "model FLOPs, causal-halved attention";
  EXPECT_DOUBLE_EQ(speed(printed), 150e12 / causal);

  Measurement hardware = row();
  hardware.hw_tflops_per_gpu = 150;
  hardware.flops_convention = "hardware FLOPs incl. full recompute, full attention";
  EXPECT_DOUBLE_EQ(speed(hardware),
                   150e12 / hardware_flop_per_token(gpt3(), 2048, Recompute::full, 1));

  Measurement utilisation = row();
  utilisation.mfu_pct = 50;
  utilisation.mfu_peak_tflops = 312;
  utilisation.flops_convention = "model and hardware FLOPs, full attention";
  EXPECT_DOUBLE_EQ(speed(utilisation), 156e12 / full);
}

TEST(Throughput, ANominalSizeIsNoMeasure) {
  EXPECT_EQ(reason(row()), "no throughput printed");
  Measurement printed = row();
  printed.hw_tflops_per_gpu = 50;
  EXPECT_EQ(reason(printed), "only a FLOP rate is printed, and not what it counts");
  printed.flops_convention = "hardware FLOPs incl. recompute, nominal size label only (no logits)";
  EXPECT_EQ(reason(printed), "only a FLOP rate is printed: " + printed.flops_convention);
  printed.flops_convention = "printed MFU, formula constants differ from the dimensions";
  EXPECT_EQ(reason(printed), "only a FLOP rate is printed: " + printed.flops_convention);
  printed.tokens_per_s_per_gpu = 7;
  EXPECT_DOUBLE_EQ(speed(printed), 7);
}

}  // namespace
}  // namespace orrery

// Models described by hand, against the same model of the catalog and against a machine's limits.
#include <gtest/gtest.h>

#include <cmath>

#include "core/yaml.h"
#include "twin/twin.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

struct Predicted {
  Scenario scenario;
  Answer answer;
};

Predicted predicted(const std::string& yaml) {
  Scenario scenario =
      resolve(request_from_json(parse_yaml(yaml, "job.yaml"), "job.yaml"), catalog());
  Answer answer = predict(scenario);
  return {std::move(scenario), std::move(answer)};
}

// Llama-3.1-8B's layer (arXiv 2407.21783, table 3). Attention is causal flash attention over 2048
// tokens: of each pair 4 FLOPs a number of 32 heads x 128, half the pairs attended, 2.5 times as
// much backward; it reads q, k, v and writes o.
const std::string llama = R"(
custom:
  name: llama-by-hand
  hidden: 4096
  vocabulary: 128256
  layers:
  - name: decoder
    count: 32
    ops:
    - {name: norm1, flop: 24576, bytes: 16384, parameters: 4096}
    - {name: qkv, matmul: [4096, 6144], split: columns}
    - {name: rotary, flop: 30720, bytes: 24576, kept: 0, backward: 1}
    - {name: attention, flop: 16777216, bytes: 20480, width: 4096, unit: matrix, backward: 2.5}
    - {name: proj, matmul: [4096, 4096], split: rows}
    - {name: residual1, from: [input, proj], flop: 4096, bytes: 24576, kept: 0, backward: 0}
    - {name: norm2, flop: 24576, bytes: 16384, parameters: 4096}
    - {name: fc1, matmul: [4096, 28672], split: columns}
    - {name: swiglu, flop: 114688, bytes: 86016, width: 14336, backward: 1.67}
    - {name: fc2, matmul: [14336, 4096], split: rows}
    - {name: residual2, from: [residual1, fc2], flop: 4096, bytes: 24576, kept: 0, backward: 0}
)";
const std::string job =
    "gpu: h100-sxm\ngpus: 8\nseq-len: 2048\nglobal-batch: 128\nconvention: causal-attention\n";

TEST(CustomScenario, ACopyOfAFamilyIsPredictedAsTheFamily) {
  for (const std::string division : {"tp: 2\n", "tp: 4\npp: 2\n"}) {
    const Predicted copy = predicted(llama + job + division);
    const Predicted family = predicted("model: llama-3.1-8b\n" + job + division);
    EXPECT_EQ(parameters(copy.scenario.model).total(), parameters(family.scenario.model).total());
    EXPECT_NEAR(copy.answer.step / family.answer.step, 1, 0.05) << division;
    EXPECT_NEAR(copy.answer.needed() / family.answer.needed(), 1, 0.05) << division;
  }
}

TEST(CustomScenario, CountsMatrixFlopsAsTheFamilyDoes) {
  const Predicted copy = predicted(llama + job + "tp: 2\n");
  const Architecture family = predicted("model: llama-3.1-8b\n" + job).scenario.model;
  const double vector =
      32 * (24576 * 6.0 + 2 * 30720 + 2 * 4096 + 114688 * 2.67);  // which families leave out
  const double repeated = 32 * 16777216.0 * 0.5;  // q k^T again, inside the fused kernel
  const auto convention = FlopConvention::causal_attention;
  EXPECT_NEAR((flop_per_token(copy.scenario.model, 2048, convention).value() - vector - repeated) /
                  flop_per_token(family, 2048, convention).value(),
              1, 1e-9);
}

const std::string stencil_ops = R"(
custom:
  trained: false
  hidden: 2
  layers:
  - {name: sweep, count: 1000, ops: [{name: update, flop: 8, bytes: 8}]}
gpu: h100-sxm
gpus: 8
seq-len: 8388608
micro-batch: 16
)";

// 2^27 cells a GPU, 8 bytes each a sweep, at the bandwidth that copies attain.
TEST(CustomScenario, AStencilTakesItsBytesOverTheBandwidth) {
  const Predicted one = predicted(stencil_ops + "global-batch: 128\n");
  const double attained = one.scenario.cluster.gpu.memory.bandwidth.value().value() *
                          one.scenario.kernels.rates.stream.value();
  const double sweeps = 1000 * 8 * std::pow(2, 27) / attained;
  EXPECT_NEAR(one.answer.time.compute.value(), sweeps, 0.01 * sweeps);
  EXPECT_EQ(one.answer.time.optimizer, Seconds());
  EXPECT_DOUBLE_EQ(one.answer.model_flops_per_gpu * one.answer.step.value(),
                   1000 * 8 * std::pow(2, 27));
  // Two states of a cell, in and out; nothing is kept from sweep to sweep or step to step.
  EXPECT_NEAR(one.answer.memory.footprint[3].value() + one.answer.memory.footprint[4].value(),
              2 * 4 * std::pow(2, 27), 1);
  const Predicted four = predicted(stencil_ops + "global-batch: 512\n");
  EXPECT_EQ(four.answer.needed(), one.answer.needed());
}

TEST(CustomScenario, WorkThatIsBoundByArithmeticTakesItsFlopsOverThePeak) {
  std::string heavy = stencil_ops + "global-batch: 128\n";
  heavy.replace(heavy.find("flop: 8,"), 8, "flop: 8e3,");
  const Predicted vector = predicted(heavy);
  EXPECT_NEAR(vector.answer.model_flops_per_gpu * vector.answer.step.value() /
                  vector.answer.time.compute.value() / 66.9e12,
              1, 0.001);
}

std::string reason_of(const std::string& yaml) { return predicted(yaml).answer.reason; }

TEST(CustomScenario, RulesSayWhatOperatorsDoNotAllow) {
  const std::string copy = llama + job;
  EXPECT_NE(reason_of(copy + "cp: 2\n").find("context ranks exchange"), std::string::npos);
  const std::string sweeps = stencil_ops + "global-batch: 128\n";
  EXPECT_NE(reason_of(sweeps + "tp: 2\n").find("no operator of custom is divided"),
            std::string::npos);
  EXPECT_NE(reason_of(sweeps + "pp: 2\n").find("nothing is trained"), std::string::npos);
  EXPECT_THROW(predicted(copy + "task: lora\n"), InputError);
  EXPECT_THROW(predicted(sweeps + "optimizer: adam\n"), InputError);
  EXPECT_THROW(predicted(copy + "model: gpt2\n"), InputError);
}

TEST(CustomScenario, AModelThatIsTypedWinsOverTheOneInTheFile) {
  const Request file = request_from_json(parse_yaml(llama + job, "job.yaml"), "job.yaml");
  Request typed;
  typed.values["model"] = "gpt2";
  typed.values["seq-len"] = "1024";
  typed.place = std::string(command_line);
  EXPECT_EQ(resolve(merged(file, typed), catalog()).model.name, "gpt2");
}

}  // namespace
}  // namespace orrery

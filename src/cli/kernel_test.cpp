// `orrery kernel` as typed: what it answers and what it refuses.
#include <gmock/gmock.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/kernel_questions.h"
#include "core/error.h"
#include "core/json.h"

namespace orrery::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string printed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "kernel");
  const Parsed parsed = parse(std::move(arguments));
  return parsed.verb->run(parsed.command).text;
}

std::string refused(std::vector<std::string> arguments) {
  try {
    printed(std::move(arguments));
  } catch (const InputError& error) {
    return error.what();
  }
  return "answered";
}

Json answered_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  return parse_json(printed(std::move(arguments)), "answer");
}

std::vector<std::string> gemm(std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"gemm", "--gpu", "h100-sxm", "--m", "4096",
                                    "--n",  "4096",  "--k",      "4096"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(KernelVerb, SaysWhatBoundsAProductAndOnWhatItRests) {
  EXPECT_THAT(printed(gemm()), AllOf(StartsWith("gemm m 4096 n 4096 k 4096 on h100-sxm at 700 W"),
                                     HasSubstr("TFLOP/s"), HasSubstr("ridge at"),
                                     HasSubstr("CTAs on 132 SMs"), HasSubstr("gemm bf16 of ")));
  EXPECT_THAT(printed(gemm({"--explain"})), HasSubstr("issue limit of a large tile"));
}

// 4096^3 at the published 989.4 TFLOP/s takes 139 us, and the ridge of 3.35 TB/s is at 295 FLOP/B.
TEST(KernelVerb, JsonAgreesWithTheDatasheet) {
  const Json answer = answered_json(gemm());
  EXPECT_EQ(answer["schema_version"], Json(1));
  const double flop = 2.0 * 4096 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(answer["flop"].as_double(), flop);
  EXPECT_GT(answer["time_s"].as_double(), flop / 989.4e12);
  EXPECT_LT(answer["time_s"].as_double(), 1.5 * flop / 989.4e12);
  EXPECT_LE(answer["low_s"].as_double(), answer["time_s"].as_double());
  EXPECT_GE(answer["high_s"].as_double(), answer["time_s"].as_double());
  EXPECT_NEAR(answer["roofline"]["ridge_flop_per_byte"].as_double(), 295, 1);
  EXPECT_NEAR(answer["energy_j"].as_double(),
              answer["power_w"].as_double() * answer["time_s"].as_double(), 1e-9);
  EXPECT_LE(answer["peak_share"].as_double(), 1);
}

TEST(KernelVerb, SlowsDownUnderAPowerCap) {
  const Json free = answered_json(gemm()), capped = answered_json(gemm({"--power-cap", "300W"}));
  EXPECT_EQ(capped["bound"], Json("power"));
  EXPECT_GT(capped["time_s"].as_double(), 1.05 * free["time_s"].as_double());
  EXPECT_LE(capped["power_w"].as_double(), 300.5);
  EXPECT_THAT(refused(gemm({"--power-cap", "900"})),
              HasSubstr("--power-cap: \"900\" cannot be set on h100-sxm"));
}

TEST(KernelVerb, SweepsOneFlag) {
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const std::string doubled = printed(gemm({"--sweep", "m=1..100"}));
  EXPECT_THAT(doubled, AllOf(StartsWith("m,time_us,"), HasSubstr("\n64,"), HasSubstr("\n100,")));
  EXPECT_EQ(lines(doubled), 1 + 8);
  EXPECT_EQ(lines(printed(gemm({"--sweep", "k=64..256:64"}))), 1 + 4);
  EXPECT_EQ(answered_json(gemm({"--sweep", "m=1..4"}))["points"].size(), 3u);
  EXPECT_THAT(refused(gemm({"--sweep", "rows=1..4"})), HasSubstr("sweeps no flag of gemm"));
  EXPECT_THAT(refused(gemm({"--sweep", "m=4..1"})), HasSubstr("ends before it starts"));
  EXPECT_THAT(refused(gemm({"--sweep", "m=1..2147483649"})), HasSubstr("is no sweep"));
  EXPECT_THAT(refused(gemm({"--sweep", "m=1..2147483648:1"})), HasSubstr("too many points"));
}

TEST(KernelVerb, SaysWhenItStretchesParameters) {
  EXPECT_THAT(printed({"rmsnorm", "--gpu", "h200-sxm", "--rows", "4096", "--cols", "8192"}),
              HasSubstr("extrapolated: timed on h100-sxm, not h200-sxm"));
  EXPECT_TRUE(
      answered_json({"rmsnorm", "--gpu", "h200-sxm", "--rows", "8", "--cols", "8"})["extrapolated"]
          .as_bool());
}

TEST(KernelVerb, AnswersForEveryOperator) {
  for (const KernelOp& op : kernel_ops()) {
    std::vector<std::string> words = {std::string(op.name), "--gpu", "h100-sxm"};
    for (const std::string_view flag : op.flags) {
      if (flag == "bytes") words.insert(words.end(), {"--bytes", "16MiB"});
      if (flag == "gpus") words.insert(words.end(), {"--gpus", "8"});
      for (const std::string_view size : {"m", "n", "k", "rows", "cols", "heads", "q-len"}) {
        if (flag == size) words.insert(words.end(), {"--" + std::string(flag), "512"});
      }
    }
    const Json answer = answered_json(words);
    EXPECT_GT(answer["time_s"].as_double(), 0) << op.name;
    EXPECT_LT(answer["time_s"].as_double(), 1) << op.name;
    EXPECT_LE(answer["bandwidth_share"].as_double(), 1) << op.name;
  }
}

TEST(KernelVerb, OfTheLongestSidesIsFinite) {
  const std::string most = "2147483648";
  EXPECT_GT(answered_json({"gemm", "--gpu", "l4", "--m", most, "--n", most, "--k", most})["time_s"]
                .as_double(),
            1);
  EXPECT_GT(answered_json({"softmax", "--gpu", "b200", "--rows", most, "--cols", most})["time_s"]
                .as_double(),
            1);
}

TEST(KernelVerb, RefusesWhatItCannotMean) {
  EXPECT_THAT(refused({}), HasSubstr("no operator is given"));
  EXPECT_THAT(refused({"gem", "--gpu", "h100-sxm"}), HasSubstr("did you mean \"gemm\"?"));
  EXPECT_THAT(refused({"fourier", "--gpu", "h100-sxm"}), HasSubstr("the operators are gemm, "));
  EXPECT_THAT(refused({"gemm", "--m", "1", "--n", "1", "--k", "1"}), HasSubstr("no GPU is given"));
  EXPECT_THAT(refused({"gemm", "--gpu", "h100-sxm", "--m", "1"}), HasSubstr("needs --n"));
  EXPECT_THAT(refused(gemm({"--rows", "4"})), HasSubstr("--rows: gemm has no such flag"));
  EXPECT_THAT(refused(gemm({"--precision", "bf61"})), HasSubstr("bf16"));
  EXPECT_THAT(refused(gemm({"--library", "mkl"})), HasSubstr("the libraries are "));
  EXPECT_THAT(refused({"gemm", "--gpu", "a100-sxm-80gb", "--m", "1", "--n", "1", "--k", "1",
                       "--precision", "fp8"}),
              HasSubstr("has no fp8 units"));
  EXPECT_THAT(refused({"attention", "--gpu", "h100-sxm", "--heads", "32", "--kv-heads", "5",
                       "--q-len", "64"}),
              HasSubstr("--kv-heads: "));
  EXPECT_THAT(refused({"all_reduce", "--gpu", "h100-sxm", "--gpus", "8"}),
              HasSubstr("needs --bytes"));
}

}  // namespace
}  // namespace orrery::cli

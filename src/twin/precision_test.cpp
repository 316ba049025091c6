#include "twin/precision.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/error.h"
#include "twin/twin.h"

namespace orrery {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;

using Values = std::map<std::string, std::string>;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

Scenario resolved(Values values) {
  values.insert({{"model", "llama-3.1-8b"},
                 {"gpu", "h100-sxm"},
                 {"gpus", "8"},
                 {"tp", "2"},
                 {"global-batch", "64"},
                 {"precision", "auto"}});
  return resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog());
}

Answer answered(const Values& values, const char* precision = "auto") {
  Values with = values;
  with["precision"] = precision;
  return predict(resolved(with));
}

const MatrixChoice& choice(const Answer& answer, const std::string& name) {
  const auto found =
      std::find_if(answer.precision_policy.begin(), answer.precision_policy.end(),
                   [&](const MatrixChoice& choice) { return choice.name() == name; });
  if (found == answer.precision_policy.end()) throw std::out_of_range(name);
  return *found;
}

MATCHER_P(IsIn, precision, "") { return arg.precision == precision; }

TEST(PrecisionPolicy, LargeMatricesGoToFp8) {
  const Answer answer = answered({});
  ASSERT_TRUE(answer.feasible) << answer.reason;
  for (const char* matrix : {"qkv", "proj", "fc1", "fc2"}) {
    const MatrixChoice& made = choice(answer, std::string("decoder.") + matrix);
    EXPECT_EQ(made.precision, Precision::fp8) << matrix;
    EXPECT_LT(*made.narrow, *made.wide) << matrix;
    EXPECT_THAT(made.why, HasSubstr("% faster"));
  }
  EXPECT_EQ(choice(answer, "head.logits").precision, Precision::bf16);
  EXPECT_THAT(choice(answer, "head.logits").why, HasSubstr("by rule"));
  EXPECT_EQ(answer.precision, Precision::fp8);
  EXPECT_EQ(answer.peak, resolved({}).cluster.gpu.required_peak(Precision::fp8));
}

// A GEMM of 512 x 512 takes no longer in bf16, and its operands must be cast.
TEST(PrecisionPolicy, SmallMatricesStayIn16Bits) {
  const Answer answer = answered(
      {{"model", "gpt2"}, {"gpus", "1"}, {"tp", "1"}, {"seq-len", "512"}, {"framework", "nemo"}});
  ASSERT_TRUE(answer.priced) << answer.reason;
  EXPECT_EQ(choice(answer, "decoder.proj").precision, Precision::bf16);
  EXPECT_GT(*choice(answer, "decoder.proj").narrow, *choice(answer, "decoder.proj").wide);
  EXPECT_EQ(answer.step, answered({{"model", "gpt2"},
                                   {"gpus", "1"},
                                   {"tp", "1"},
                                   {"seq-len", "512"},
                                   {"framework", "nemo"}},
                                  "bf16")
                             .step);
}

TEST(PrecisionPolicy, AmpereHasNoFp8) {
  const Answer answer = answered({{"gpu", "a100-sxm-80gb"}});
  EXPECT_THAT(answer.precision_policy, Each(IsIn(Precision::bf16)));
  EXPECT_THAT(answer.precision_policy.front().why, HasSubstr("has no fp8"));
  EXPECT_EQ(answer.step, answered({{"gpu", "a100-sxm-80gb"}}, "bf16").step);
}

TEST(PrecisionPolicy, FourBitWeightsStay) {
  const Answer answer = answered({{"task", "qlora"}, {"framework", "hf"}, {"tp", "1"}});
  EXPECT_THAT(answer.precision_policy, Each(IsIn(Precision::bf16)));
}

// fc1 of 8 x 11008 / 8 columns: 2 x 1376 is a multiple of 16; heads of 100 are not.
TEST(PrecisionPolicy, MisalignedMatricesStay) {
  Scenario scenario = resolved({});
  scenario.model.ffn = 14344;  // / tp 2: 7172 = 16 x 448.25; fc1 has twice as many columns
  const Answer answer = predict(scenario);
  ASSERT_TRUE(answer.priced) << answer.reason;
  EXPECT_EQ(choice(answer, "decoder.fc2").precision, Precision::bf16);
  EXPECT_THAT(choice(answer, "decoder.fc2").why, HasSubstr("multiple of 16"));
  EXPECT_EQ(choice(answer, "decoder.qkv").precision, Precision::fp8);
}

TEST(PrecisionPolicy, AllOfFp8IsTheSameAsFp8) {
  EXPECT_EQ(answered({}).step, answered({}, "fp8").step);
  EXPECT_EQ(answered({}).mfu, answered({}, "fp8").mfu);
  EXPECT_EQ(answered({}).needed(), answered({}, "fp8").needed());
}

TEST(PrecisionPolicy, NothingSaidIsStill16Bits) {
  Values values = {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"gpus", "8"}, {"tp", "2"}};
  const Scenario scenario =
      resolve(Request{.values = values, .architecture = {}, .place = "test"}, catalog());
  EXPECT_EQ(scenario.precision, Precision::bf16);
  EXPECT_FALSE(scenario.weighs_precision);
  EXPECT_TRUE(predict(scenario).precision_policy.empty());
}

// Beyond rounding, over models of every family that trains on a node.
TEST(PrecisionPolicy, IsNeverSlowerThanEither) {
  int compared = 0;
  for (const char* model : {"gpt2", "llama-3.2-1b", "llama-3.1-8b", "mixtral-8x7b", "gemma-2-9b",
                            "qwen3-30b-a3b", "falcon-7b"}) {
    for (const char* gpu : {"h100-sxm", "l40s", "b200", "a100-sxm-80gb"}) {
      for (const char* seq_len : {"512", "4096"}) {
        const Values values = {
            {"model", model}, {"gpu", gpu}, {"tp", "1"}, {"gpus", "8"}, {"seq-len", seq_len}};
        const Answer chosen = answered(values), wide = answered(values, "bf16");
        if (!chosen.priced) continue;
        ++compared;
        if (wide.priced && wide.feasible == chosen.feasible) {
          EXPECT_LE(chosen.step, wide.step * (1 + 1e-9)) << model << gpu << seq_len;
        }
        if (!resolved(values).cluster.gpu.supports(Precision::fp8)) continue;
        const Answer narrow = answered(values, "fp8");
        if (narrow.priced && narrow.feasible == chosen.feasible) {
          EXPECT_LE(chosen.step, narrow.step * (1 + 1e-9)) << model << gpu << seq_len;
        }
      }
    }
  }
  EXPECT_GT(compared, 40);
}

TEST(PrecisionPolicy, HostBoundJobsGainNothingFromCasts) {
  const Values values = {{"model", "gpt2"},   {"gpus", "1"},       {"tp", "1"},
                         {"seq-len", "1024"}, {"framework", "hf"}, {"recompute", "none"}};
  const Answer answer = answered(values);
  EXPECT_EQ(answer.bound, "host");
  EXPECT_THAT(answer.precision_policy, Each(IsIn(Precision::bf16)));
}

TEST(KeptLayers, LieBetweenBf16AndFp8) {
  const Values kept = {{"fp8-keep-layers", "first:4,last:4"}};
  const double wide = answered({}, "bf16").step.value(), narrow = answered({}, "fp8").step.value();
  const double some = answered(kept, "fp8").step.value();
  // 8 of 32 layers, and a head that is the same in all.
  EXPECT_NEAR((some - narrow) / (wide - narrow), 0.25, 0.03);
  EXPECT_EQ(answered(kept).step.value(), some);
  EXPECT_THAT(choice(answered(kept), "decoder in 16 bits.fc1").why, HasSubstr("fp8-keep-layers"));
}

TEST(KeptLayers, AreRefusedInWords) {
  const auto message = [](const char* keep, const char* precision) -> std::string {
    try {
      resolved({{"fp8-keep-layers", keep}, {"precision", precision}});
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("first:1,last:1", "fp8"), "accepted");
  EXPECT_THAT(message("first:1", "bf16"), HasSubstr("no other is multiplied in fp8"));
  EXPECT_THAT(message("middle:1", "fp8"), HasSubstr("is not first:N,last:N"));
  EXPECT_THAT(message("first:20,last:20", "fp8"), HasSubstr("more than the 32 layers"));
  EXPECT_THAT(message("first:x", "fp8"), HasSubstr("x"));
}

}  // namespace
}  // namespace orrery

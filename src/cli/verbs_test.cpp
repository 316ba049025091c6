// The verbs as typed: what they print.
#include <gmock/gmock.h>

#include "cli/command.h"
#include "core/error.h"
#include "core/json.h"

namespace orrery::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string printed(std::vector<std::string> arguments) {
  const Parsed parsed = parse(std::move(arguments));
  return parsed.verb->run(parsed.command).text;
}

TEST(PlanVerb, NeedsANumberOfGpus) {
  try {
    printed({"plan", "--model", "llama-3.1-8b", "--gpu", "h100-sxm"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no number of GPUs is given; add --gpus N"));
  }
}

TEST(PlanVerb, MarksPlansThatNearlyFillTheCard) {
  const std::string full =
      printed({"plan", "--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--gpus", "64", "--tp", "4",
               "--pp", "4", "--micro-batch", "2", "--vpp", "5"});
  EXPECT_THAT(full, AllOf(HasSubstr(" !"), HasSubstr("! over 92 % of the 78.1 GiB")));
  EXPECT_THAT(full, HasSubstr("vpp: chunks of layers a stage"));
}

TEST(PredictVerb, ShowsThePowerCap) {
  const std::vector<std::string> job = {"predict", "--model", "llama-3.1-8b", "--gpu", "h100-sxm",
                                        "--gpus",  "8",       "--tp",         "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), job.begin(), job.end());
    return printed(more);
  };
  EXPECT_THAT(with({}), HasSubstr("8 x h100-sxm (8 in each"));
  EXPECT_THAT(with({"--power-cap", "500"}), HasSubstr("8 x h100-sxm at 500 W (8 in each"));
  const auto cap = [](const std::string& text) {
    return parse_json(text, "answer")["machine"]["power_cap_w"];
  };
  EXPECT_EQ(cap(with({"--power-cap", "500", "--json"})), Json(500.0));
  EXPECT_TRUE(cap(with({"--json"})).is_null());
}

TEST(PredictVerb, CountsAndEnergyReadWell) {
  const std::string text = printed({"predict", "--model", "llama-3.1-8b", "--gpu", "h100-sxm",
                                    "--gpus", "8", "--tp", "2", "--tokens", "15T"});
  EXPECT_THAT(text, AllOf(HasSubstr("for 15 T tokens"), HasSubstr(" MWh, "), Not(HasSubstr("e+"))));
}

TEST(CatalogVerb, ListsOneKind) {
  const std::string models = printed({"catalog", "models"});
  EXPECT_THAT(models, AllOf(HasSubstr("llama-3.1-8b"), Not(HasSubstr("h100-sxm"))));
  EXPECT_THAT(models, HasSubstr("described but not trained yet"));  // encoder-decoders
  EXPECT_THAT(models, HasSubstr("starcoder2"));                     // a family
  EXPECT_THAT(printed({"catalog", "gpus"}),
              AllOf(HasSubstr("h100-sxm"), Not(HasSubstr("llama-3.1-8b"))));
}

TEST(CatalogVerb, JsonSaysItsVersionAndWhatIsRefused) {
  const Json all = parse_json(printed({"catalog", "--json"}), "catalog");
  EXPECT_EQ(all["schema_version"], Json(1));
  EXPECT_TRUE(all["refused"].contains("t5-base"));
  EXPECT_FALSE(all["refused"].contains("mixtral-8x7b-v0.1"));
  EXPECT_GT(all["families"].size(), 100u);
  EXPECT_EQ(parse_json(printed({"catalog", "l4", "--json"}), "l4")["schema_version"], Json(1));
}

}  // namespace
}  // namespace orrery::cli

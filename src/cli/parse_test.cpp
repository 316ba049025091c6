#include <gmock/gmock.h>

#include "cli/command.h"
#include "core/error.h"

namespace orrery::cli {
namespace {

using testing::HasSubstr;

std::string message_of(std::vector<std::string> arguments) {
  try {
    parse(std::move(arguments));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Parse, FlagsBecomeARequest) {
  const Parsed parsed = parse(
      {"predict", "--model", "gpt2", "--gpu=l4", "--tp", "2", "--sequence-parallel", "--json"});
  EXPECT_EQ(parsed.verb->name, "predict");
  const auto& values = parsed.command.request.values;
  EXPECT_EQ(values.at("model"), "gpt2");
  EXPECT_EQ(values.at("gpu"), "l4");
  EXPECT_EQ(values.at("tp"), "2");
  EXPECT_EQ(values.at("sequence-parallel"), "true");
  EXPECT_EQ(values.size(), 4u);
  EXPECT_TRUE(parsed.command.json);
  EXPECT_FALSE(parsed.command.explain);
}

TEST(Parse, AFlagCanBeTurnedOff) {
  const Parsed parsed = parse({"predict", "--sequence-parallel=false"});
  EXPECT_EQ(parsed.command.request.values.at("sequence-parallel"), "false");
  const Parsed spaced = parse({"predict", "--sequence-parallel", "false", "--tp", "2"});
  EXPECT_EQ(spaced.command.request.values.at("sequence-parallel"), "false");
  EXPECT_EQ(spaced.command.request.values.at("tp"), "2");
  EXPECT_EQ(
      parse({"predict", "--sequence-parallel"}).command.request.values.at("sequence-parallel"),
      "true");
}

TEST(Parse, ASwitchTakesNoValue) {
  EXPECT_EQ(message_of({"predict", "--json=false"}),
            "--json: the flag takes no value; write --json");
  EXPECT_EQ(message_of({"predict", "--json=true"}), "no error");
}

TEST(Parse, UnknownVerbsAndFlagsHaveNearMisses) {
  EXPECT_EQ(message_of({"predicts"}), "unknown verb \"predicts\"; did you mean \"predict\"?");
  EXPECT_EQ(message_of({"predict", "--micro-bach", "2"}),
            "unknown flag \"--micro-bach\"; did you mean \"--micro-batch\"?");
  EXPECT_EQ(message_of({}), "no verb is given; see orrery --help");
  EXPECT_THAT(message_of({"--tp", "2"}), HasSubstr("a verb comes before the flags"));
  EXPECT_THAT(message_of({"version", "more"}), HasSubstr("unexpected argument \"more\""));
}

TEST(Parse, AFlagNeedsItsValueOnce) {
  EXPECT_EQ(message_of({"predict", "--tp"}), "--tp: the flag needs a value; see --help");
  EXPECT_EQ(message_of({"predict", "--tp", "--pp", "4"}),
            "--tp: the flag needs a value (the next word is another flag); see --help");
  EXPECT_EQ(message_of({"predict", "--tp", "1", "--tp", "2"}),
            "--tp: the flag is given twice; keep one");
  EXPECT_EQ(parse({"predict", "--tp", "-3"}).command.request.values.at("tp"), "-3");
}

TEST(Parse, HelpOfEveryVerbHasAnExample) {
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("predict"));
  for (const Verb& verb : verbs()) {
    const Parsed parsed = parse({std::string(verb.name), "--help"});
    EXPECT_EQ(parsed.verb, nullptr);
    EXPECT_THAT(parsed.text, HasSubstr("example\n  orrery " + std::string(verb.name)));
    EXPECT_THAT(parsed.text, HasSubstr("--json"));
  }
}

TEST(Parse, HelpOfPlanSaysWhatIsSearchedAndReadsTheTable) {
  const std::string text = parse({"plan", "--help"}).text;
  EXPECT_THAT(text, HasSubstr("whatever is left out is searched"));
  EXPECT_THAT(text, HasSubstr("why not first"));
  EXPECT_THAT(text, HasSubstr("(nemo)"));
}

TEST(Parse, HelpListsEveryKeyOfARequest) {
  const std::string text = parse({"help", "predict"}).text;
  for (const RequestKey& key : request_keys()) {
    EXPECT_THAT(text, HasSubstr("--" + std::string(key.name)));
  }
}

}  // namespace
}  // namespace orrery::cli

#include "catalog/fact.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "units/text.h"

namespace orrery {
namespace {

Fact<Watts> read(const std::string& text) {
  return FieldReader<Fact<Watts>>::read(parse_json(text, "t"), {"h100.json", "power.idle"});
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Fact, KeepsItsPast) {
  const Fact<Watts> idle =
      read(R"({"value": "72 W", "evidence": "measured", "source": "s1", "note": "no context"})");
  EXPECT_TRUE(idle.known());
  EXPECT_EQ(idle.value(), Watts(72));
  EXPECT_EQ(idle.provenance().evidence, Evidence::measured);
  EXPECT_EQ(idle.provenance().source, "s1");
  EXPECT_EQ(idle.provenance().note, "no context");
}

TEST(Fact, SaysThatItIsUnknownWhenItIsUsed) {
  const Fact<Watts> idle =
      read(R"({"value": null, "evidence": "unknown", "note": "no measurement found"})");
  EXPECT_FALSE(idle.known());
  EXPECT_EQ(idle.value_or(Watts(1)), Watts(1));
  try {
    idle.value();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "h100.json: power.idle: the value is unknown (no measurement found)");
  }
}

TEST(Fact, RefusesValuesWithoutAPast) {
  EXPECT_EQ(refusal(R"({"value": "72 W", "evidence": "measured"})"),
            "h100.json: power.idle.source: a value needs a source");
  EXPECT_EQ(refusal(R"({"value": "72 W", "evidence": "unknown"})"),
            "h100.json: power.idle.evidence: a value that is there is not unknown");
  EXPECT_EQ(refusal(R"({"value": null, "evidence": "measured", "source": "s1"})"),
            "h100.json: power.idle.evidence: a value that is null is unknown");
  EXPECT_EQ(refusal(R"({"evidence": "unknown"})"), "h100.json: power.idle.value: missing");
  EXPECT_EQ(refusal(R"({"value": "72 W", "evidence": "rumour", "source": "s1"})"),
            "h100.json: power.idle.evidence: expected one of datasheet, measured, derived, fitted, "
            "assumed, unknown, got \"rumour\"");
}

}  // namespace
}  // namespace orrery

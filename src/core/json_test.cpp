#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

using testing::HasSubstr;

std::string parse_error(std::string_view text) {
  try {
    parse_json(text, "x.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(JsonTest, builds_and_reads_nested_values) {
  Json json = Json::object({{"name", "h100"}, {"gpus", 8}, {"ratio", 0.5}, {"on", true}});
  json.set("list", Json::array({1, "two", nullptr}));
  EXPECT_EQ(json["name"].as_string(), "h100");
  EXPECT_EQ(json["gpus"].as_integer(), 8);
  EXPECT_DOUBLE_EQ(json["gpus"].as_double(), 8.0);
  EXPECT_TRUE(json["on"].as_bool());
  EXPECT_EQ(json["list"].size(), 3u);
  EXPECT_TRUE(json["list"][2].is_null());
  EXPECT_EQ(json.find("missing"), nullptr);
}

TEST(JsonTest, keeps_the_order_of_insertion) {
  Json json;
  json.set("zebra", 1).set("ant", 2).set("zebra", 3);
  EXPECT_EQ(json.dump(), R"({"zebra":3,"ant":2})");
}

TEST(JsonTest, indents) {
  const Json json = Json::object({{"a", Json::array({1, 2})}, {"b", Json::object()}});
  EXPECT_EQ(json.dump(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(JsonTest, the_wrong_kind_breaks_a_contract) {
  EXPECT_THROW(Json("text").as_integer(), ContractError);
  EXPECT_THROW(Json(1.5).as_integer(), ContractError);
  EXPECT_THROW(Json(1)["key"], ContractError);
  EXPECT_THROW(Json::array({1})[1], ContractError);
  EXPECT_THROW(Json::object({{"a", 1}, {"a", 2}}), ContractError);
  EXPECT_THROW(Json{std::numeric_limits<std::uint64_t>::max()}, ContractError);
}

TEST(JsonTest, never_writes_a_number_that_is_none) {
  EXPECT_THROW(Json(std::nan("")).dump(), ContractError);
  EXPECT_THROW(Json(INFINITY).dump(), ContractError);
}

TEST(JsonTest, writes_doubles_in_their_shortest_form) {
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(3.0).dump(), "3.0");
  EXPECT_EQ(Json(1e300).dump(), "1e+300");
}

// Any bit pattern, so that the rare doubles come up too.
RC_GTEST_PROP(JsonTest, every_double_survives_its_text, (std::uint64_t bits)) {
  const double value = std::bit_cast<double>(bits);
  RC_PRE(std::isfinite(value));
  const Json read = parse_json(Json(value).dump(), "x");
  RC_ASSERT(!read.is_integer());
  RC_ASSERT(std::bit_cast<std::uint64_t>(read.as_double()) == bits);
}

// Strings come back as they were, or with their bad bytes replaced.
RC_GTEST_PROP(JsonTest, every_string_survives_its_text, (const std::string& text)) {
  const Json read = parse_json(Json(text).dump(), "x");
  RC_ASSERT(valid_utf8_length(read.as_string()) == read.as_string().size());
  RC_ASSERT(valid_utf8_length(text) < text.size() || read.as_string() == text);
}

TEST(JsonTest, every_string_is_written_as_valid_json) {
  EXPECT_EQ(Json("a\"b\\\n\x01").dump(), R"("a\"b\\\n\u0001")");
  EXPECT_EQ(Json("caf\xC3\xA9").dump(), "\"caf\xC3\xA9\"");
  EXPECT_EQ(Json("bad\xFFnext").dump(), "\"bad\xEF\xBF\xBDnext\"");
}

TEST(ParseJsonTest, reads_what_dump_wrote) {
  const Json json = Json::object(
      {{"a", Json::array({1, -2, 2.5, true, nullptr, "é\n"})}, {"b", Json::object({{"c", ""}})}});
  EXPECT_EQ(parse_json(json.dump(), "x"), json);
  EXPECT_EQ(parse_json(json.dump(2), "x"), json);
}

TEST(ParseJsonTest, keeps_integers_exact) {
  EXPECT_EQ(parse_json("9223372036854775807", "x").as_integer(), 9223372036854775807);
  EXPECT_EQ(parse_json("-9223372036854775808", "x").as_integer(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_DOUBLE_EQ(parse_json("18446744073709551615", "x").as_double(), 18446744073709551615.0);
}

TEST(ParseJsonTest, refuses_a_key_that_appears_twice) {
  EXPECT_THAT(parse_error("{\"a\": 1,\n \"a\": 2}"),
              testing::AllOf(HasSubstr("x.json:2:4"), HasSubstr("the key \"a\" appears twice")));
  EXPECT_EQ(parse_error(R"({"a": {"b": 1}, "c": {"b": 1}})"), "accepted");
}

TEST(ParseJsonTest, refuses_text_nested_too_deep) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth)), "accepted");
  EXPECT_THAT(parse_error(nested(kMaxJsonDepth + 1)), HasSubstr("nested too deep"));
  EXPECT_THAT(parse_error(std::string(1000000, '[')), HasSubstr("nested too deep"));
}

TEST(ParseJsonTest, refuses_what_is_not_json) {
  EXPECT_THAT(parse_error(""), HasSubstr("x.json:1:1: not valid JSON"));
  EXPECT_THAT(parse_error("{} {}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error("{\n\"a\": nope}"), HasSubstr("x.json:2:"));
  EXPECT_THAT(parse_error("[1,]"), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error("// no\n1"), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error("NaN"), HasSubstr("not valid JSON"));
  EXPECT_EQ(parse_error("1e999"), "x.json:1:5: not valid JSON (number overflow parsing '1e999')");
  EXPECT_EQ(parse_error("{\"a\" 1}"),
            "x.json:1:7: not valid JSON (unexpected number literal; expected ':')");
  EXPECT_THAT(parse_error(std::string_view("1\0 2", 4)), HasSubstr("zero byte"));
  EXPECT_THAT(parse_error("\"\xC0\xAF\""), HasSubstr("x.json:1:2: not valid UTF-8"));
  EXPECT_THAT(parse_error("\"\xED\xA0\x80\""), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(parse_error("\"\\ud800\""), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace orrery

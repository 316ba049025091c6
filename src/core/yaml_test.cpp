#include "core/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "core/error.h"

namespace orrery {
namespace {

using testing::HasSubstr;

std::string yaml_error(std::string_view text) {
  try {
    parse_yaml(text, "x.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ParseYamlTest, reads_what_json_would_say) {
  const Json json = parse_yaml(
      "model: llama-3.1-70b\n"
      "gpus: 64\n"
      "ratio: 1.5e-3\n"
      "flags: [true, false, null, ~]\n"
      "nested:\n"
      "  empty:\n"
      "  quoted: \"64\"\n",
      "x");
  EXPECT_EQ(json.dump(),
            R"({"model":"llama-3.1-70b","gpus":64,"ratio":0.0015,)"
            R"("flags":[true,false,null,null],"nested":{"empty":null,"quoted":"64"}})");
}

TEST(ParseYamlTest, json_is_yaml) {
  const std::string text = R"({"a": [1, -2.5, "x"], "b": {"c": null}})";
  EXPECT_EQ(parse_yaml(text, "x"), parse_json(text, "x"));
}

TEST(ParseYamlTest, what_json_would_not_read_as_a_number_is_text) {
  for (const char* text : {"007", "+5", "0x10", "1_000", ".5", "1.", ".inf", ".nan", "yes", "True",
                           "1e", "3.35 TB/s"}) {
    EXPECT_TRUE(parse_yaml(text, "x").is_string()) << text;
  }
}

TEST(ParseYamlTest, numbers_in_keys_stay_text) {
  EXPECT_EQ(parse_yaml("8: a", "x")["8"].as_string(), "a");
}

TEST(ParseYamlTest, refuses_anchors_aliases_and_tags) {
  EXPECT_THAT(yaml_error("a: &x 1\nb: *x"), HasSubstr("anchors and aliases"));
  EXPECT_THAT(yaml_error("a: &x [1]"), HasSubstr("x.yaml:1:"));
  EXPECT_THAT(yaml_error("a: !!python/object 1"), HasSubstr("tags"));
  EXPECT_THAT(yaml_error("a: !x {b: 1}"), HasSubstr("tags"));
}

TEST(ParseYamlTest, refuses_a_key_that_appears_twice) {
  EXPECT_THAT(yaml_error("a: 1\nb: 2\na: 3"),
              testing::AllOf(HasSubstr("x.yaml:3:1"), HasSubstr("the key \"a\" appears twice")));
}

TEST(ParseYamlTest, refuses_keys_that_are_not_text) {
  EXPECT_THAT(yaml_error("? [1, 2]\n: 3"), HasSubstr("key"));
  EXPECT_THAT(yaml_error(": 3"), HasSubstr("key"));
}

TEST(ParseYamlTest, refuses_other_than_one_document) {
  EXPECT_THAT(yaml_error(""), HasSubstr("empty"));
  EXPECT_THAT(yaml_error("# only a comment\n"), HasSubstr("empty"));
  EXPECT_THAT(yaml_error("a: 1\n---\nb: 2"), HasSubstr("more than one"));
  EXPECT_EQ(yaml_error("---\na: 1\n"), "accepted");
}

TEST(ParseYamlTest, refuses_what_is_not_yaml) {
  EXPECT_THAT(yaml_error("a: [1, 2"), HasSubstr("not valid YAML"));
  EXPECT_THAT(yaml_error("a: 1\n b: 2"), HasSubstr("not valid YAML"));
  EXPECT_THAT(yaml_error("{a: 1} ]"), HasSubstr("not valid YAML"));
  EXPECT_THAT(yaml_error("a: \"\xFF\""), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(yaml_error(std::string_view("a: 1\0b: 2", 9)), HasSubstr("control character"));
  EXPECT_THAT(yaml_error("a: 1e999"), HasSubstr("too large"));
  EXPECT_THAT(yaml_error("a: \"\\N\""), HasSubstr("x.yaml:1:4: the escapes"));
  EXPECT_THAT(yaml_error("\"\\_\": 1"), HasSubstr("the escapes"));
}

TEST(ReadJsonOrYamlTest, refuses_what_is_too_long_to_be_a_scenario) {
  const std::string path = testing::TempDir() + "long.yaml";
  std::ofstream(path) << std::string(kScenarioReadLimit, '#') << '\n';
  try {
    read_json_or_yaml(path);
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("too large (the limit is 1 MiB)"));
  }
}

TEST(ParseYamlTest, refuses_deep_nesting_of_every_kind_quickly) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t many = 100000;
  std::string blocks;
  std::string maps;
  std::string indented;
  for (std::size_t i = 0; i < 300; ++i) indented += std::string(i, ' ') + "a:\n";
  for (std::size_t i = 0; i < many; ++i) blocks += "- ";
  for (std::size_t i = 0; i < many; ++i) maps += "{a: ";
  std::string questions;
  for (std::size_t i = 0; i < many; ++i) questions += "? ";
  for (const std::string& text :
       {std::string(many, '['), std::string(many, '{'), blocks, maps, indented, questions}) {
    EXPECT_NE(yaml_error(text), "accepted") << text.substr(0, 20);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace orrery

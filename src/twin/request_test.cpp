#include <gmock/gmock.h>

#include <fstream>

#include "core/error.h"
#include "twin/scenario.h"

namespace orrery {
namespace {

using testing::HasSubstr;

std::string written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

std::string message_of(const std::string& path) {
  try {
    request_from_file(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Request, YamlAndJsonAreTheSame) {
  const Request yaml = request_from_file(
      written("same.yaml", "model: llama-3.1-8b\ngpus: 8\nsequence-parallel: true\n"));
  const Request json = request_from_file(
      written("same.json", R"({"model": "llama-3.1-8b", "gpus": 8, "sequence-parallel": true})"));
  EXPECT_EQ(yaml.values, json.values);
  EXPECT_EQ(yaml.values.at("gpus"), "8");
  EXPECT_EQ(yaml.values.at("sequence-parallel"), "true");
}

TEST(Request, NestedValuesAreRefused) {
  EXPECT_THAT(message_of(written("nested.yaml", "tp:\n  - 1\n  - 2\n")),
              HasSubstr("nested.yaml: tp: expected a number, a word or true or false"));
  EXPECT_THAT(message_of(written("list.yaml", "- 1\n")),
              HasSubstr("a scenario is a list of keys and values"));
  EXPECT_THAT(message_of(written("null.yaml", "tp:\n")), HasSubstr("null.yaml: tp: expected"));
}

TEST(Request, FlagsWinOverTheFile) {
  const Request file{.values = {{"tp", "8"}, {"pp", "2"}}, .architecture = {}, .place = "a.yaml"};
  const Request flags{
      .values = {{"tp", "4"}}, .architecture = {}, .place = std::string(command_line)};
  const Request both = merged(file, flags);
  EXPECT_EQ(both.values.at("tp"), "4");
  EXPECT_EQ(both.values.at("pp"), "2");
  EXPECT_EQ(both.place_of("tp"), "--tp");
  EXPECT_EQ(both.place_of("pp"), "a.yaml: pp");
}

TEST(Request, AnObjectIsEnough) {
  const Request request = request_from_json(Json::object({{"tp", 2}}), "here");
  EXPECT_EQ(request.values.at("tp"), "2");
  EXPECT_EQ(request.place_of("tp"), "here: tp");
}

}  // namespace
}  // namespace orrery

#include "core/fields.h"

#include <gtest/gtest.h>

#include <functional>

namespace orrery {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const Json kModel = Json::object({{"name", "llama"},
                                  {"layers", 80},
                                  {"width", "abc"},
                                  {"ratio", 1.5},
                                  {"big", 1e30},
                                  {"minus", -1},
                                  {"thousand", 1e3},
                                  {"nothing", nullptr},
                                  {"sizes", Json::array({1, 2, "x"})},
                                  {"inner", Json::object({{"depth", 2}, {"typo", 1}})},
                                  {"list", Json::array({Json::object({{"a", 1}}), 5})}});

static_assert(!std::is_constructible_v<Fields, Json, std::string>, "would outlive its Json");

TEST(FieldsTest, reads_typed_values) {
  Fields fields(kModel, "llama.json");
  EXPECT_EQ(fields.required<std::string>("name"), "llama");
  EXPECT_EQ(fields.required<int>("layers"), 80);
  EXPECT_EQ(fields.required<std::uint64_t>("thousand"), 1000u);
  EXPECT_DOUBLE_EQ(fields.required<double>("layers"), 80.0);
  EXPECT_EQ(fields.nested("inner").required<int>("depth"), 2);
  EXPECT_EQ(fields.optional<int>("nothing"), std::nullopt);
  EXPECT_EQ(fields.optional<int>("absent", 7), 7);
}

TEST(FieldsTest, says_where_and_what_was_expected) {
  Fields fields(kModel, "llama.json");
  EXPECT_EQ(error_of([&] { fields.required<int>("width"); }),
            "llama.json: width: expected an integer, got \"abc\"");
  EXPECT_EQ(error_of([&] { fields.required<int>("ratio"); }),
            "llama.json: ratio: expected an integer, got 1.5");
  EXPECT_EQ(error_of([&] { fields.required<unsigned>("minus"); }),
            "llama.json: minus: expected a non-negative integer, got -1");
  EXPECT_EQ(error_of([&] { fields.required<std::int64_t>("big"); }),
            "llama.json: big: expected an integer below 2^53, got 1e+30");
  EXPECT_EQ(error_of([&] { fields.required<std::int8_t>("thousand"); }),
            "llama.json: thousand: expected an integer between -128 and 127, got 1000.0");
  EXPECT_EQ(error_of([&] { fields.required<bool>("layers"); }),
            "llama.json: layers: expected true or false, got 80");
  EXPECT_EQ(error_of([&] { fields.required<std::string>("inner"); }),
            "llama.json: inner: expected a string, got an object");
  EXPECT_EQ(error_of([&] { fields.required<std::vector<int>>("sizes"); }),
            "llama.json: sizes[2]: expected an integer, got \"x\"");
  EXPECT_EQ(error_of([&] { fields.list("list"); }),
            "llama.json: list[1]: expected an object, got 5");
  EXPECT_EQ(error_of([&] { fields.nested("inner").required<bool>("depth"); }),
            "llama.json: inner.depth: expected true or false, got 2");
  const Json five = 5;
  EXPECT_EQ(error_of([&] { Fields(five, "x.json"); }), "x.json: expected an object, got 5");
}

TEST(FieldsTest, keeps_numbers_in_range) {
  Fields fields(kModel, "m");
  EXPECT_EQ(fields.required_in("layers", 1, 80), 80);
  EXPECT_EQ(error_of([&] { fields.required_in("layers", 1, 79); }),
            "m: layers: must be between 1 and 79, got 80");
  EXPECT_EQ(fields.optional_in("absent", 1, 2), std::nullopt);
}

TEST(FieldsTest, a_missing_key_may_be_a_misspelt_one) {
  const Json json = Json::object({{"hiden_size", 1}});
  Fields misspelt(json, "m");
  EXPECT_EQ(error_of([&] { misspelt.required<int>("hidden_size"); }),
            "m: the key \"hidden_size\" is missing; is \"hiden_size\" meant to be it?");
}

TEST(FieldsTest, refuses_keys_that_nobody_asked_for) {
  const Json json = Json::object({{"layers", 1}, {"heds", 2}});
  Fields fields(json, "m");
  fields.required<int>("layers");
  fields.optional<int>("heads");
  EXPECT_EQ(error_of([&] { fields.finish(); }), "m: unknown key \"heds\"; did you mean \"heads\"?");
  fields.ignore("heds");
  EXPECT_EQ(error_of([&] { fields.finish(); }), "accepted");
}

enum class Activation { swiglu, gelu };

TEST(FieldsTest, chooses_among_names) {
  const Json json = Json::object({{"good", "gelu"}, {"bad", "swiglo"}});
  Fields fields(json, "m");
  const auto read = [&](const char* key) {
    return fields.choice<Activation>(key,
                                     {{"swiglu", Activation::swiglu}, {"gelu", Activation::gelu}});
  };
  EXPECT_EQ(read("good"), Activation::gelu);
  EXPECT_EQ(error_of([&] { read("bad"); }),
            "m: bad: expected one of swiglu, gelu, got \"swiglo\"; did you mean \"swiglu\"?");
}

}  // namespace
}  // namespace orrery

#include "units/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace orrery {
namespace {

using namespace literals;
using testing::HasSubstr;

template <class Q>
std::string parse_error(std::string_view text) {
  try {
    parse<Q>(text, "gpu.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ParseQuantityTest, reads_what_datasheets_write) {
  EXPECT_DOUBLE_EQ(parse<BytesPerSecond>("3.35 TB/s").value(), 3.35e12);
  EXPECT_DOUBLE_EQ(parse<BytesPerSecond>("400 Gb/s").value(), 50e9);
  EXPECT_DOUBLE_EQ(parse<BytesPerSecond>("900GBps").value(), 900e9);
  EXPECT_DOUBLE_EQ(parse<Bytes>("80 GB").value(), 80e9);
  EXPECT_DOUBLE_EQ(parse<Bytes>(" 50 MiB ").value(), 50.0 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(parse<FlopPerSecond>("989.4 TFLOPS").value(), 989.4e12);
  EXPECT_DOUBLE_EQ(parse<FlopPerSecond>("989.4 TFLOP/s").value(), 989.4e12);
  EXPECT_DOUBLE_EQ(parse<FlopPerSecond>("1979 TOPS").value(), 1979e12);
  EXPECT_DOUBLE_EQ(parse<Watts>("0.7 kW").value(), 700);
  EXPECT_DOUBLE_EQ(parse<Seconds>("5 us").value(), 5e-6);
  EXPECT_DOUBLE_EQ(parse<Seconds>("5µs").value(), 5e-6);
  EXPECT_DOUBLE_EQ(parse<Hertz>("1.98 GHz").value(), 1.98e9);
  EXPECT_DOUBLE_EQ(parse<DollarsPerSecond>("3.6 USD/h").value(), 1e-3);
  EXPECT_DOUBLE_EQ(parse<DollarsPerSecond>("3.6 $/hour").value(), 1e-3);
  EXPECT_DOUBLE_EQ(parse<DollarsPerJoule>("0.36 USD/kWh").value(), 1e-7);
  EXPECT_DOUBLE_EQ(parse<Tokens>("15 T tokens").value(), 15e12);
  EXPECT_DOUBLE_EQ(parse<TokensPerSecond>("400 tok/s").value(), 400);
  EXPECT_DOUBLE_EQ(parse<DollarsPerToken>("2 USD/M tokens").value(), 2e-6);
  EXPECT_DOUBLE_EQ(parse<Seconds>("1e-3 s").value(), 1e-3);
}

TEST(ParseQuantityTest, refuses_a_number_without_a_unit) {
  EXPECT_EQ(parse_error<Watts>("700"),
            "gpu.json: the unit is missing (got \"700\"); valid units: mW, W, kW, MW, GW");
}

TEST(ParseQuantityTest, refuses_unknown_units_and_lists_the_valid_ones) {
  EXPECT_EQ(parse_error<Watts>("700 watts"),
            "gpu.json: unknown unit \"watts\" (got \"700 watts\"); valid units: mW, W, kW, MW, GW");
  EXPECT_THAT(parse_error<BytesPerSecond>("3 TB"), HasSubstr("\"TB\" is a unit of something else"));
  EXPECT_THAT(parse_error<BytesPerSecond>("3 TB"), HasSubstr("Gb/s"));
  EXPECT_THAT(parse_error<Bytes>("3 GB/s"), HasSubstr("GiB"));
  EXPECT_THAT(parse_error<Bytes>("3 gb"), HasSubstr("unknown unit"));
  EXPECT_THAT(parse_error<BytesPerSecond>("3 GB/"), HasSubstr("unknown unit"));
}

TEST(ParseQuantityTest, refuses_what_is_no_amount) {
  EXPECT_THAT(parse_error<Bytes>(""), HasSubstr("expected a number with a unit"));
  EXPECT_THAT(parse_error<Bytes>("GB"), HasSubstr("expected a number with a unit"));
  EXPECT_THAT(parse_error<Bytes>("-1 GB"), HasSubstr("must not be negative"));
  EXPECT_THAT(parse_error<Bytes>("inf GB"), HasSubstr("out of range"));
  EXPECT_THAT(parse_error<Bytes>("nan GB"), HasSubstr("out of range"));
  EXPECT_THAT(parse_error<Bytes>("1e308 PB"), HasSubstr("out of range"));
  EXPECT_THAT(parse_error<Bytes>("1,000 GB"), HasSubstr("unknown unit"));
}

TEST(QuantityTextTest, chooses_the_unit_that_fits) {
  EXPECT_EQ(to_text(1.234_s), "1.23 s");
  EXPECT_EQ(to_text(45.6_GiB), "45.6 GiB");
  EXPECT_EQ(to_text(3.35_TBps), "3.35 TB/s");
  EXPECT_EQ(to_text(989.4_TFLOPs), "989 TFLOP/s");
  EXPECT_EQ(to_text(700_W), "700 W");
  EXPECT_EQ(to_text(12_us), "12 us");
  EXPECT_EQ(to_text(90_s), "1.5 min");
  EXPECT_EQ(to_text(Dollars(1.5e6)), "1.5 M USD");
  EXPECT_EQ(to_text(Tokens(15e12)), "15 T tokens");
  EXPECT_EQ(to_text(-2_ms), "-2 ms");
  EXPECT_EQ(to_text(0_s), "0 s");
  EXPECT_EQ(to_text(1_GiB), "1 GiB");
  EXPECT_EQ(to_text(Dollars(0.00012)), "0.00012 USD");
}

TEST(QuantityTextTest, rounds_before_it_chooses) {
  EXPECT_EQ(to_text(999.9_ms), "1 s");
  EXPECT_EQ(to_text(998.6_ms), "999 ms");
  EXPECT_EQ(to_text(59.99_s), "1 min");
}

template <class Q>
void expect_text_to_come_back() {
  for (double exponent = -8; exponent < 16; exponent += 0.37) {
    const Q quantity(std::pow(10.0, exponent));
    const std::string text = to_text(quantity);
    EXPECT_NEAR(parse<Q>(text) / quantity, 1, 0.006) << text;
  }
}

TEST(QuantityTextTest, what_is_written_can_be_read) {
  expect_text_to_come_back<Seconds>();
  expect_text_to_come_back<Hertz>();
  expect_text_to_come_back<Bytes>();
  expect_text_to_come_back<BytesPerSecond>();
  expect_text_to_come_back<Flop>();
  expect_text_to_come_back<FlopPerSecond>();
  expect_text_to_come_back<FlopPerByte>();
  expect_text_to_come_back<FlopPerJoule>();
  expect_text_to_come_back<Joules>();
  expect_text_to_come_back<JoulesPerByte>();
  expect_text_to_come_back<Watts>();
  expect_text_to_come_back<Dollars>();
  expect_text_to_come_back<DollarsPerSecond>();
  expect_text_to_come_back<DollarsPerJoule>();
  expect_text_to_come_back<DollarsPerToken>();
  expect_text_to_come_back<Tokens>();
  expect_text_to_come_back<TokensPerSecond>();
  expect_text_to_come_back<SecondsPerToken>();
  expect_text_to_come_back<BytesPerToken>();
  expect_text_to_come_back<FlopPerToken>();
  expect_text_to_come_back<JoulesPerToken>();
}

TEST(QuantityFieldTest, is_text_with_a_unit) {
  const Json json = Json::object({{"capacity", "80 GB"}, {"power", 700}});
  Fields fields(json, "gpu.json");
  EXPECT_EQ(fields.required<Bytes>("capacity"), 80_GB);
  try {
    fields.required<Watts>("power");
    FAIL() << "a number without a unit was accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "gpu.json: power: expected a quantity with a unit, as text, got 700");
  }
}

}  // namespace
}  // namespace orrery

#include "units/quantity.h"

#include <gtest/gtest.h>

#include <concepts>

namespace orrery {
namespace {

using namespace literals;

template <class A, class B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a < b;
};

static_assert(CanAdd<Bytes, Bytes>);
static_assert(!CanAdd<Bytes, Seconds>);
static_assert(!CanAdd<Bytes, BytesPerSecond>, "a rate must not add to an amount");
static_assert(!CanAdd<Bytes, double>);
static_assert(!CanCompare<Bytes, Seconds>);
static_assert(!CanCompare<Bytes, double>);
static_assert(!std::convertible_to<double, Bytes>, "a number without a unit is no quantity");
static_assert(!std::convertible_to<Bytes, double>);
static_assert(!std::convertible_to<Bytes, Flop>);

static_assert(std::same_as<decltype(1_B / 1_GBps), Seconds>);
static_assert(std::same_as<decltype(1_GBps * 1_s), Bytes>);
static_assert(std::same_as<decltype(1_FLOP / 1_B), FlopPerByte>);
static_assert(std::same_as<decltype(1_W * 1_s), Joules>);
static_assert(std::same_as<decltype(1_s / 2_s), double>, "a ratio is a number");
static_assert(std::same_as<decltype(2_GHz * 1_s), double>);
static_assert(std::same_as<decltype(1.0 / 1_s), Hertz>);
static_assert(std::same_as<decltype(1_USD / 1_tokens), DollarsPerToken>);
static_assert(sizeof(Seconds) == sizeof(double));

TEST(QuantityTest, arithmetic_is_that_of_numbers) {
  EXPECT_DOUBLE_EQ((2_s + 500_ms).value(), 2.5);
  EXPECT_DOUBLE_EQ((2_s - 500_ms).value(), 1.5);
  EXPECT_DOUBLE_EQ((-2_s).value(), -2);
  EXPECT_DOUBLE_EQ((3 * 2_s).value(), 6);
  EXPECT_DOUBLE_EQ((2_s * 3).value(), 6);
  EXPECT_DOUBLE_EQ((3_s / 2).value(), 1.5);
  Seconds sum;
  sum += 3_s;
  sum -= 1_s;
  sum *= 4;
  sum /= 2;
  EXPECT_EQ(sum, 4_s);
}

TEST(QuantityTest, memory_divided_by_bandwidth_is_time) {
  EXPECT_DOUBLE_EQ((67_GB / 3.35_TBps).value(), 0.02);
  EXPECT_DOUBLE_EQ((989_TFLOPs * 2_s).value(), 1978e12);
  EXPECT_DOUBLE_EQ(10_s / 4_s, 2.5);
}

TEST(QuantityTest, orders) {
  EXPECT_LT(999_ms, 1_s);
  EXPECT_EQ(1000_ms, 1_s);
  EXPECT_GT(1_GiB, 1_GB);
}

TEST(QuantityTest, literals_have_their_scale) {
  EXPECT_DOUBLE_EQ((1_us).value(), 1e-6);
  EXPECT_DOUBLE_EQ((1_h).value(), 3600);
  EXPECT_DOUBLE_EQ((1_KiB).value(), 1024);
  EXPECT_DOUBLE_EQ((400_Gbps).value(), 50e9);
  EXPECT_DOUBLE_EQ((1_kWh).value(), 3.6e6);
  EXPECT_DOUBLE_EQ((1.5_PFLOPs).value(), 1.5e15);
}

TEST(QuantityTest, knows_size_and_sense) {
  EXPECT_EQ(abs(-2_s), 2_s);
  EXPECT_FALSE(is_finite(1_s / 0.0));
  EXPECT_TRUE(is_finite(1_s));
}

}  // namespace
}  // namespace orrery

#include "core/text.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

const std::vector<std::string> kGpus = {"a100-sxm-80gb", "h100-pcie", "h100-sxm", "rtx-4090"};

TEST(DidYouMeanTest, finds_slips_of_the_hand) {
  EXPECT_EQ(nearest("h100-smx", kGpus), "h100-sxm");
  EXPECT_EQ(nearest("H100-SXM", kGpus), "h100-sxm");
  EXPECT_EQ(nearest("rtx4090", kGpus), "rtx-4090");
  EXPECT_EQ(nearest("4090", kGpus), "rtx-4090");
  EXPECT_EQ(did_you_mean("h100sxm", kGpus), "did you mean \"h100-sxm\"?");
}

TEST(DidYouMeanTest, says_nothing_when_nothing_is_near) {
  EXPECT_EQ(nearest("tpu", kGpus), std::nullopt);
  EXPECT_EQ(nearest("", kGpus), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'h'), kGpus), std::nullopt);
  EXPECT_EQ(did_you_mean("banana", {}), "");
}

TEST(DidYouMeanTest, every_single_edit_is_undone) {
  for (const std::string& name : kGpus) {
    for (std::size_t i = 0; i < name.size(); ++i) {
      std::string dropped = name;
      dropped.erase(i, 1);
      std::string doubled = name;
      doubled.insert(i, 1, 'q');
      EXPECT_EQ(nearest(dropped, kGpus), name);
      EXPECT_EQ(nearest(doubled, kGpus), name);
    }
  }
}

TEST(JoinTest, separates) {
  const std::vector<std::string> parts = {"a", "b", "c"};
  EXPECT_EQ(join(parts), "a, b, c");
  EXPECT_EQ(join(parts, " | "), "a | b | c");
  EXPECT_EQ(join({}), "");
}

TEST(InQuotesTest, is_safe_to_print) {
  EXPECT_EQ(in_quotes("plain é"), "\"plain é\"");
  EXPECT_EQ(in_quotes("a\"b"), "\"a\\\"b\"");
  EXPECT_EQ(in_quotes("\x1b[31m\n"), "\"\\x1b[31m\\x0a\"");
  EXPECT_EQ(in_quotes("\xFF"), "\"\\xff\"");
  EXPECT_EQ(in_quotes("\xC2\x9B"), "\"\\xc2\"");
  EXPECT_LT(in_quotes(std::string(1000, 'x')).size(), 100u);
}

TEST(Utf8Test, stops_at_the_first_bad_byte) {
  EXPECT_EQ(valid_utf8_length("aé€😀"), 10u);
  EXPECT_EQ(valid_utf8_length("a\xC3"), 1u);
  EXPECT_EQ(valid_utf8_length("\xC0\x80"), 0u);
  EXPECT_EQ(valid_utf8_length("\xE0\x80\x80"), 0u);
  EXPECT_EQ(valid_utf8_length("\xF4\x90\x80\x80"), 0u);
}

TEST(LineAndColumnTest, counts_from_one) {
  EXPECT_EQ(line_and_column("ab\ncd", 0), "1:1");
  EXPECT_EQ(line_and_column("ab\ncd", 2), "1:3");
  EXPECT_EQ(line_and_column("ab\ncd", 4), "2:2");
}

}  // namespace
}  // namespace orrery

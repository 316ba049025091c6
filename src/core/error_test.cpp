#include "core/error.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(InputErrorTest, says_place_problem_reason_and_suggestion_in_one_line) {
  const InputError error("unknown GPU", "no entry h10", "did you mean \"h100\"?", "job.yaml");
  EXPECT_STREQ(error.what(), "job.yaml: unknown GPU (no entry h10); did you mean \"h100\"?");
}

TEST(InputErrorTest, leaves_out_what_is_empty) {
  EXPECT_STREQ(InputError("empty").what(), "empty");
  EXPECT_STREQ(InputError("empty", "", "write one").what(), "empty; write one");
}

TEST(InputErrorTest, gains_an_outer_place) {
  const InputError inner("bad", "why", "", "tp");
  EXPECT_STREQ(inner.within("job.yaml").what(), "job.yaml: tp: bad (why)");
  EXPECT_EQ(InputError("bad").within("job.yaml").place, "job.yaml");
}

int half_of_even(int value) {
  EXPECT(value % 2 == 0);
  return value / 2;
}

TEST(ContractTest, a_broken_promise_names_the_condition_and_the_file) {
  EXPECT_EQ(half_of_even(4), 2);
  try {
    half_of_even(3);
    FAIL() << "the contract did not hold and nothing was thrown";
  } catch (const ContractError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("value % 2 == 0"), std::string::npos) << text;
    EXPECT_EQ(text.rfind("src/core/error_test.cpp:", 0), 0u) << text;
  }
}

}  // namespace
}  // namespace orrery

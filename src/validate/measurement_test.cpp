#include "validate/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

using ::testing::HasSubstr;

const std::string head =
    "id,gpu,gpus,model,seq_len,global_batch_seqs,precision,step_time_s,outcome\n";

std::string error_of(const std::string& text) {
  try {
    measurements_from_csv(text, "t.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Measurements, CellsAreTypedAndBlanksStayEmpty) {
  const auto rows = measurements_from_csv(
      head + "a-001,H100-SXM-80GB,8,m,2048,,bf16,1.25,\nb-2,,,,,,,,oom\n", "t.csv");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[0].gpus, 8);
  EXPECT_EQ(rows[0].global_batch_seqs, std::nullopt);
  EXPECT_EQ(rows[0].step_time_s, 1.25);
  EXPECT_EQ(rows[0].task, "pretrain");
  EXPECT_EQ(rows[0].outcome, Outcome::ok);
  EXPECT_EQ(rows[1].gpu, "");
  EXPECT_EQ(rows[1].outcome, Outcome::oom);
}

TEST(Measurements, TheSourceIsTheIdWithoutItsNumber) {
  EXPECT_EQ(source_of("llm-foundry-001"), "llm-foundry");
  EXPECT_EQ(source_of("torchtitan-a100-003b"), "torchtitan-a100");
  EXPECT_EQ(source_of("mlperf-gpt3"), "mlperf-gpt3");
  EXPECT_EQ(source_of("alone"), "alone");
  EXPECT_EQ(source_of("-1"), "-1");
  EXPECT_EQ(source_of("x-"), "x-");
}

TEST(Measurements, NonsenseIsRefusedWithLineColumnAndValue) {
  const auto row = [](const std::string& gpus, const std::string& step) {
    return head + "a-1,g," + gpus + ",m,1,1,bf16," + step + ",ok\n";
  };
  EXPECT_EQ(error_of(row("eight", "1")), "t.csv:2: column gpus: expected a number, got \"eight\"");
  EXPECT_EQ(error_of(row("-8", "1")),
            "t.csv:2: column gpus: expected a whole number from 1 to 10000000, got \"-8\"");
  EXPECT_THAT(error_of(row("0", "1")), HasSubstr("column gpus"));
  EXPECT_THAT(error_of(row("1.5", "1")), HasSubstr("column gpus"));
  EXPECT_THAT(error_of(row("1e300", "1")), HasSubstr("column gpus"));
  EXPECT_EQ(error_of(row("8", "nan")),
            "t.csv:2: column step_time_s: expected a number, got \"nan\"");
  EXPECT_THAT(error_of(row("8", "inf")), HasSubstr("step_time_s"));
  EXPECT_THAT(error_of(row("8", "-1")), HasSubstr("above 0"));
  EXPECT_THAT(error_of(row("8", "1.2s")), HasSubstr("got \"1.2s\""));
  EXPECT_EQ(error_of(row("8.0", "1")), "no error");
}

TEST(Measurements, ColumnsAreCheckedByName) {
  EXPECT_EQ(error_of("id,gpu,gpus,model,seq_len,global_batch_seqs\n"),
            "t.csv: missing column precision; leave cells empty where the source is silent");
  EXPECT_THAT(error_of("id,gpu,gpus,model,seqlen\n"),
              HasSubstr("unknown column \"seqlen\"; did you mean \"seq_len\"?"));
  EXPECT_THAT(error_of(head + "a-1,g,1,m,1,1,bf16,1,fine\n"),
              HasSubstr("column outcome: expected ok, oom or does not fit, got \"fine\""));
}

TEST(Measurements, IdsAreThereAndUnique) {
  EXPECT_EQ(error_of(head + ",g,1,m,1,1,bf16,1,ok\n"), "t.csv:2: this row has no id");
  EXPECT_EQ(error_of(head + "a-1,g,1,m,1,1,bf16,1,ok\na-1,g,1,m,1,1,bf16,1,ok\n"),
            "t.csv:3: id \"a-1\" appears twice");
}

}  // namespace
}  // namespace orrery

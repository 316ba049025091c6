#include "validate/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Measurement run(const std::string& id, double tokens_per_s) {
  Measurement row;
  row.id = id;
  row.gpu = "H100-SXM-80GB";
  row.gpus = 8;
  row.gpus_per_node = 8;
  row.framework = "NeMo";
  row.model = "llama";
  row.layers = 4;
  row.hidden = 1024;
  row.heads = row.kv_heads = 8;
  row.head_dim = 128;
  row.ffn_hidden = 4096;
  row.mlp = "swiglu";
  row.vocab = 32000;
  row.seq_len = 2048;
  row.global_batch_seqs = 64;
  row.micro_batch = 1;
  row.precision = "bf16";
  row.tp = row.pp = row.cp = 1;
  row.dp = 8;
  row.zero_stage = "1";
  row.recompute = "none";
  if (tokens_per_s > 0) row.tokens_per_s_per_gpu = tokens_per_s;
  return row;
}

// 100 tokens/s and 10 GiB of 12, whatever is asked.
Answer hundred(const Request&) {
  Answer answer;
  answer.priced = answer.feasible = true;
  answer.tokens_per_s_per_gpu = 100;
  answer.memory.footprint.fill(Bytes(0));
  answer.memory.footprint[0] = Bytes(10.0 * (1 << 30));
  return answer;
}

TEST(Validate, ErrorsArePredictedOverMeasured) {
  const Report report = validate({run("a-1", 80), run("a-2", 100), run("b-1", 125)}, hundred);
  ASSERT_THAT(report.rows, SizeIs(3));
  EXPECT_DOUBLE_EQ(*report.rows[0].error, 0.25);
  EXPECT_NEAR(*report.rows[2].error, -0.2, 1e-12);
  EXPECT_EQ(report.summary.n, 3);
  EXPECT_NEAR(*report.summary.median, 0.2, 1e-12);
  EXPECT_NEAR(*report.summary.mean, 0.15, 1e-12);
  // Medians of the sources: a (0.25, 0) 0.125, b 0.2.
  EXPECT_NEAR(*report.median_of_source_medians, 0.1625, 1e-12);
  EXPECT_EQ(report.defaulted, 0);
}

TEST(Validate, GroupsFollowTheirLabelsInOrder) {
  const Report report = validate({run("b-1", 100), run("a-1", 80)}, hundred);
  std::vector<std::string> names;
  for (const ErrorGroup& group : report.groups) names.push_back(group.by + " " + group.key);
  EXPECT_THAT(names, ElementsAre("source a", "source b", "gpu h100-sxm", "framework nemo",
                                 "task pretrain", "precision bf16"));
  EXPECT_EQ(report.groups[2].errors.n, 2);
}

TEST(Validate, EveryRowIsEitherAnsweredOrSkippedByName) {
  Measurement tuning = run("a-1", 80);
  tuning.task = "dpo";
  Measurement silent = run("a-2", 0);
  const auto refuses = [](const Request& request) -> Answer {
    if (request.place == "a-3") throw InputError("no such GPU", "none is near");
    Answer answer;
    answer.reason = "tp 8 does not divide 6 heads";
    return answer;
  };
  const Report report = validate({tuning, silent, run("a-3", 80), run("a-4", 80)}, refuses);
  EXPECT_THAT(report.rows, SizeIs(0));
  ASSERT_THAT(report.skipped, SizeIs(4));
  EXPECT_EQ(report.skipped[0].id, "a-1");
  EXPECT_EQ(report.skipped[0].reason, "task dpo is not known");
  EXPECT_EQ(report.skipped[1].reason, "no throughput printed");
  EXPECT_EQ(report.skipped[2].reason, "no such GPU (none is near)");
  EXPECT_EQ(report.skipped[3].reason, "the layout breaks a rule: tp 8 does not divide 6 heads");
}

TEST(Validate, MemoryIsComparedWhereItIsPrinted) {
  Measurement row = run("a-1", 0);
  row.peak_mem_gib = 8;
  Measurement analytical = run("a-2", 0);
  analytical.peak_mem_gib = 20;
  analytical.outcome = Outcome::does_not_fit;
  const Report report = validate({row, analytical, run("a-3", 100)}, hundred);
  EXPECT_EQ(report.summary.n, 1);
  EXPECT_EQ(report.memory.n, 2);
  EXPECT_DOUBLE_EQ(*report.rows[0].memory_error, 0.25);
  EXPECT_DOUBLE_EQ(*report.rows[1].memory_error, -0.5);
  EXPECT_EQ(report.rows[0].measured, std::nullopt);
  EXPECT_EQ(report.rows[0].predicted, 100);
}

TEST(Validate, RefusalsAreCountedOverRunsThatFailedAndRunsThatRan) {
  Measurement oom = run("a-1", 0);
  oom.outcome = Outcome::oom;
  Measurement caught = oom;
  caught.id = "a-2";
  Measurement alarm = run("a-3", 100);
  Measurement analytical = run("a-4", 0);
  analytical.outcome = Outcome::does_not_fit;
  const auto refuses_some = [](const Request& request) {
    Answer answer = hundred(request);
    answer.feasible = request.place == "a-1";
    return answer;
  };
  const OomTally tally = validate({oom, caught, alarm, analytical}, refuses_some).oom;
  EXPECT_EQ(tally.n, 2);
  EXPECT_EQ(tally.refused, 1);
  EXPECT_EQ(tally.ran, 1);
  EXPECT_EQ(tally.ran_refused, 1);
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> out;
  for (const auto& [key, value] : json.members()) out.push_back(key);
  return out;
}

TEST(Validate, JsonHasTheDocumentedKeys) {
  Measurement tuning = run("a-9", 80);
  tuning.task = "dpo";
  Measurement defaulted = run("a-2", 100);
  defaulted.recompute.clear();
  const Json json = to_json(validate({run("a-1", 80), defaulted, tuning}, hundred));
  EXPECT_THAT(keys(json),
              ElementsAre("schema_version", "summary", "groups", "memory", "oom", "rows"));
  EXPECT_THAT(keys(json["summary"]),
              ElementsAre("n", "skipped", "median_abs_error", "mean_abs_error", "p90_abs_error",
                          "within_10pct", "within_15pct", "defaulted", "median_of_source_medians"));
  EXPECT_EQ(json["summary"]["defaulted"].as_integer(), 1);
  EXPECT_THAT(keys(json["summary"]["skipped"][0]), ElementsAre("id", "reason"));
  EXPECT_THAT(keys(json["groups"][0]),
              ElementsAre("by", "key", "n", "median_abs_error", "p90_abs_error", "within_10pct"));
  EXPECT_THAT(keys(json["memory"]),
              ElementsAre("n", "median_abs_error", "p90_abs_error", "within_10pct", "groups"));
  EXPECT_TRUE(json["memory"]["median_abs_error"].is_null());
  EXPECT_THAT(keys(json["oom"]), ElementsAre("n", "refused", "ran", "ran_refused"));
  EXPECT_THAT(keys(json["rows"][0]),
              ElementsAre("id", "measured", "predicted", "error", "memory_measured",
                          "memory_predicted", "refused", "defaults"));
  EXPECT_EQ(json["rows"][1]["defaults"].size(), 1u);
}

TEST(Validate, NothingInGivesAnEmptyReport) {
  const Report report = validate({}, hundred);
  EXPECT_EQ(report.summary.n, 0);
  EXPECT_TRUE(to_json(report)["summary"]["median_abs_error"].is_null());
  EXPECT_THAT(tables_of(report), SizeIs(2));
}

TEST(Validate, TablesShareTheirColumns) {
  Measurement tuning = run("a-9", 80);
  tuning.task = "dpo";
  const auto tables = tables_of(validate({run("a-1", 80), tuning}, hundred));
  ASSERT_THAT(tables, SizeIs(3));
  for (const TextTable& table : tables) {
    for (const auto& row : table.rows) EXPECT_THAT(row, SizeIs(table.columns.size()));
  }
  EXPECT_THAT(tables[0].rows[0],
              ElementsAre("all", "rows with a speed", "1", "25.0 %", "25.0 %", "25.0 %", "0.0 %"));
  EXPECT_THAT(tables[2].rows[0], ElementsAre("task dpo is not known", "1", "a-9"));
}

}  // namespace
}  // namespace orrery

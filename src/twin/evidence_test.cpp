#include "twin/evidence.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "twin/scenario.h"

namespace orrery {
namespace {

Scenario scenario_of_gpus(const std::string& gpus) {
  const Request request{.values = {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"gpus", gpus}},
                        .architecture = {},
                        .place = "test"};
  return resolve(request, Catalog::load(default_data_dir()));
}

EvidenceTable table() {
  return {{.architecture = "hopper",
           .framework = "nemo",
           .precision = "bf16",
           .kind = "pretrain",
           .median_abs_error = 0.03,
           .p80_abs_error = 0.06,
           .rows = {{"small", 8, 8e9, 4096, "h100-sxm", 0, false},
                    {"large", 64, 8e9, 4096, "h100-sxm", 50e9, false}}}};
}

TEST(Evidence, FindsTheGroupAndTheNearestRow) {
  const TrackRecord record = track_record(table(), scenario_of_gpus("8"));
  EXPECT_EQ(record.group, "hopper nemo bf16 pretrain");
  EXPECT_EQ(record.n, 2);
  EXPECT_EQ(record.nearest, "small");
  EXPECT_FALSE(record.extrapolated);
  EXPECT_DOUBLE_EQ(record.spread, (2 * 0.06 + 2 * 0.3) / 4);
}

TEST(Evidence, IsWiderFarAway) {
  const TrackRecord record = track_record(table(), scenario_of_gpus("16384"));
  EXPECT_EQ(record.nearest, "large");
  EXPECT_TRUE(record.extrapolated);
  EXPECT_DOUBLE_EQ(record.spread, 2 * (2 * 0.06 + 2 * 0.3) / 4);
}

TEST(Evidence, IsWidestWithoutAGroup) {
  const TrackRecord record = track_record({}, scenario_of_gpus("8"));
  EXPECT_EQ(record.n, 0);
  EXPECT_TRUE(record.extrapolated);
  EXPECT_DOUBLE_EQ(record.spread, unseen_spread);
}

TEST(Evidence, ShardedWeightsAreAnotherKindOfJob) {
  EvidenceTable sharded = table();
  for (EvidenceRow& row : sharded[0].rows) row.shards_weights = true;
  EXPECT_TRUE(track_record(sharded, scenario_of_gpus("8")).extrapolated);
}

TEST(Evidence, AnotherPartOrASlowNetworkIsFarAway) {
  EvidenceTable other = table();
  for (EvidenceRow& row : other[0].rows) row.gpu = "h20";
  EXPECT_TRUE(track_record(other, scenario_of_gpus("8")).extrapolated);
  EvidenceTable slow = table();
  slow[0].rows = {{"slow", 64, 8e9, 4096, "h100-sxm", 50e9, false}};
  EXPECT_FALSE(track_record(slow, scenario_of_gpus("64")).extrapolated);
  slow[0].rows[0].network = 50e9 / 64;
  EXPECT_TRUE(track_record(slow, scenario_of_gpus("64")).extrapolated);
}

TEST(Evidence, NamesTheNearestRowOfAnotherKindButClaimsNothingFromIt) {
  EvidenceTable other = table();
  other[0].architecture = "blackwell";
  const TrackRecord record = track_record(other, scenario_of_gpus("8"));
  EXPECT_EQ(record.group, "hopper nemo bf16 pretrain");
  EXPECT_EQ(record.n, 0);
  EXPECT_EQ(record.nearest, "small");
  EXPECT_TRUE(record.extrapolated);
  EXPECT_DOUBLE_EQ(record.spread, unseen_spread);
}

TEST(Evidence, ReadsWhatItWrote) {
  const EvidenceTable read = evidence_from_json(to_json(table()), "test");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(to_json(read), to_json(table()));
}

TEST(Evidence, RefusesWhatItDoesNotKnow) {
  const Json wrong = parse_json(R"({"schema_version": 1, "groups": [], "more": 1})", "test");
  EXPECT_THROW(evidence_from_json(wrong, "test"), InputError);
}

TEST(Evidence, KindsOfJobAreGroupsOfTheirOwn) {
  const auto kind = [](std::map<std::string, std::string> values) {
    values.insert({{"gpu", "h100-sxm"}, {"gpus", "8"}});
    return kind_of(resolve(Request{.values = values, .architecture = {}, .place = "test"},
                           Catalog::load(default_data_dir())));
  };
  EXPECT_EQ(kind({{"model", "llama-3.1-8b"}}), "pretrain");
  EXPECT_EQ(kind({{"model", "llama-3.1-8b"}, {"task", "lora"}}), "lora");
  EXPECT_EQ(kind({{"model", "mixtral-8x7b-v0.1"}, {"ep", "8"}}), "pretrain experts");
  EXPECT_EQ(kind({{"model", "llava-1.5-7b"}, {"task", "sft"}}), "sft towers");
  EvidenceTable two = table();
  two.push_back(two[0]);
  two[1].kind = "lora";
  two[1].rows[0].id = "tuned";
  EXPECT_EQ(track_record(two, scenario_of_gpus("8")).nearest, "small");
}

}  // namespace
}  // namespace orrery

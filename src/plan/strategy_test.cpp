#include <gmock/gmock.h>

#include "catalog/catalog.h"
#include "plan/rules.h"

namespace orrery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Architecture model() {
  Architecture a;
  a.layers = 32, a.hidden = 4096, a.heads = 32, a.kv_heads = 8, a.ffn = 14336, a.vocab = 128256;
  return a;
}

// Of no framework in particular.
std::vector<std::string> broken_rules(const Strategy& strategy, const Architecture& architecture,
                                      std::int64_t gpus) {
  return orrery::broken_rules(strategy, {.model = architecture, .rules = {}, .gpus = gpus});
}

Strategy layout() {
  Strategy s;
  s.tp = 4, s.pp = 4, s.dp = 2, s.global_batch = 64, s.micro_batch = 2, s.seq_len = 8192;
  return s;
}

TEST(Strategy, AGoodOneBreaksNoRule) {
  EXPECT_THAT(broken_rules(layout(), model(), 32), IsEmpty());
}

TEST(Strategy, RanksAreGpus) {
  EXPECT_THAT(
      broken_rules(layout(), model(), 64),
      ElementsAre(HasSubstr("is 32 ranks, not 64 GPUs (each rank is one GPU); dp = 4 fits")));
  EXPECT_THAT(broken_rules(layout(), model(), 40),
              ElementsAre(HasSubstr("the nearest such numbers are 32 and 48")));
}

TEST(Strategy, BatchesAreWhole) {
  Strategy s = layout();
  s.global_batch = 63;
  EXPECT_THAT(
      broken_rules(s, model(), 32),
      ElementsAre(HasSubstr("the nearest valid values are 60 = 2 x 15 x 2 and 64 = 2 x 16 x 2")));
  s.global_batch = 3;
  EXPECT_THAT(broken_rules(s, model(), 32),
              ElementsAre(HasSubstr("the nearest valid value is 4 = 2 x 1 x 2")));
  s.micro_batch = 0;
  EXPECT_THAT(broken_rules(s, model(), 32), ElementsAre(HasSubstr("micro-batch is 0")));
}

TEST(Strategy, APipelineCanBeWalked) {
  Strategy s = layout();
  s.global_batch = 2 * 2 * (1 << 15);
  EXPECT_THAT(broken_rules(s, model(), 32), IsEmpty());
  s.global_batch *= 2;
  EXPECT_THAT(broken_rules(s, model(), 32),
              ElementsAre(HasSubstr("65536 micro-batches through 4 chunks of layers are more than "
                                    "can be walked; so many chunks take global batches of up to "
                                    "131072")));
  s.pp = 1;  // without a pipeline they are all alike
  EXPECT_THAT(broken_rules(s, model(), 8), IsEmpty());
}

TEST(Strategy, HeadsAndWidthsAreDivided) {
  Strategy s = layout();
  s.tp = 3, s.dp = 1, s.pp = 4;
  const auto broken = broken_rules(s, model(), 12);
  ASSERT_THAT(broken, SizeIs(3));
  EXPECT_THAT(broken[0], HasSubstr("tp 3 does not divide 32 attention heads"));
  EXPECT_THAT(broken[0], HasSubstr("tp: the nearest valid value is 1"));  // 2 x 4 stages: not 12
  EXPECT_THAT(broken_rules(s, model(), 32)[1],
              HasSubstr("tp: the nearest valid values are 2 and 4"));
  EXPECT_THAT(broken[1], HasSubstr("8 key-value heads"));
  EXPECT_THAT(broken[2], HasSubstr("feed-forward width 14336"));
  s.tp = 16;  // copies of 8 key-value heads
  EXPECT_THAT(broken_rules(s, model(), 64), IsEmpty());
}

TEST(Strategy, LayersFillTheirPlaces) {
  Architecture a = model();
  Strategy s = layout();
  a.layers = 126, a.heads = 128;
  s.pp = 16, s.dp = 1;
  EXPECT_TRUE(layers_fit(126, 16, 1));  // Llama 3 405B: 128 places, embedding and head take two
  EXPECT_THAT(broken_rules(s, a, 64), IsEmpty());
  s.pp = 5;
  EXPECT_THAT(broken_rules(s, a, 20),
              ElementsAre(HasSubstr("pp: the nearest valid value is 1")));  // 4 x 4 are not 20
  s.tp = 1;
  EXPECT_THAT(broken_rules(s, a, 5), ElementsAre(HasSubstr("pp: the nearest valid value is 1")));
  s.tp = 4;
  a.layers = 3, s.pp = 4;
  EXPECT_THAT(broken_rules(s, a, 16), ElementsAre(HasSubstr("3 layers are fewer than pp x vpp")));
  EXPECT_TRUE(layers_fit(2, 4, 1));  // the outer stages hold embedding and head alone
  EXPECT_FALSE(layers_fit(2, 1, 4));
}

TEST(Strategy, InterleavingNeedsStagesAndWholeRounds) {
  Strategy s = layout();
  s.vpp = 2;
  EXPECT_THAT(broken_rules(s, model(), 32),
              ElementsAre(HasSubstr("needs the interleaved schedule")));
  s.schedule = Schedule::interleaved;
  EXPECT_THAT(broken_rules(s, model(), 32), IsEmpty());
  s.global_batch = 72;
  EXPECT_THAT(broken_rules(s, model(), 32),
              ElementsAre(HasSubstr("18 micro-batches are not a multiple of pp 4")));
  s = layout(), s.pp = 1, s.schedule = Schedule::interleaved;
  EXPECT_THAT(broken_rules(s, model(), 8), ElementsAre(HasSubstr("more than one stage")));
}

TEST(Strategy, SequencesAreDivided) {
  Strategy s = layout();
  s.tp = 1, s.sequence_parallel = true;
  EXPECT_THAT(broken_rules(s, model(), 8),
              ElementsAre(HasSubstr("tp is 1); tp: the nearest valid value is 2")));
  s = layout(), s.cp = 3;
  EXPECT_THAT(broken_rules(s, model(), 96), ElementsAre(HasSubstr("2 x cp = 6")));
  s = layout(), s.sequence_parallel = true, s.seq_len = 8190;
  EXPECT_THAT(broken_rules(s, model(), 32),
              ElementsAre(HasSubstr("the nearest valid values are 8188 and 8192")));
}

TEST(Strategy, ShardsDivideReplicas) {
  Strategy s = layout();
  s.dp = 8, s.shard_ranks = 3;
  EXPECT_THAT(broken_rules(s, model(), 128),
              ElementsAre(HasSubstr("the nearest valid values are 2 and 4")));
}

TEST(Strategy, AllBrokenRulesAreListed) {
  Strategy s = layout();
  s.tp = 3, s.global_batch = 63, s.vpp = 2, s.seq_len = 8191, s.cp = 2, s.shard_ranks = 3;
  EXPECT_THAT(broken_rules(s, model(), 1), SizeIs(8));
}

}  // namespace
}  // namespace orrery

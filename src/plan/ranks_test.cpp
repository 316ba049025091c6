#include "plan/ranks.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Strategy layout() {
  Strategy s;
  s.tp = 4, s.cp = 2, s.dp = 8, s.pp = 3;
  return s;
}

TEST(Ranks, TensorInnermostThenContextDataPipeline) {
  const Strategy s = layout();
  EXPECT_EQ(group_of(GroupKind::tensor, s).stride, 1);
  EXPECT_EQ(group_of(GroupKind::tensor, s).ranks, 4);
  EXPECT_EQ(group_of(GroupKind::context, s).stride, 4);
  EXPECT_EQ(group_of(GroupKind::context, s).ranks, 2);
  EXPECT_EQ(group_of(GroupKind::data, s).stride, 4);
  EXPECT_EQ(group_of(GroupKind::data, s).ranks, 16);
  EXPECT_EQ(group_of(GroupKind::pipeline, s).stride, 64);
  EXPECT_EQ(group_of(GroupKind::pipeline, s).ranks, 3);
}

TEST(Ranks, TheEmbeddingGroupIsTheFirstAndTheLastStage) {
  Strategy s = layout();
  EXPECT_EQ(group_of(GroupKind::embedding, s).ranks, 2);
  EXPECT_EQ(group_of(GroupKind::embedding, s).stride, 128);
  s.pp = 1;
  EXPECT_EQ(group_of(GroupKind::embedding, s).ranks, 1);
}

TEST(Ranks, ShardsAndReplicasCoverTheReplicasOfTheWeights) {
  Strategy s = layout();
  EXPECT_EQ(group_of(GroupKind::shard, s).ranks, 16);
  EXPECT_EQ(group_of(GroupKind::replica, s).ranks, 1);
  s.shard_ranks = 4;
  EXPECT_EQ(group_of(GroupKind::shard, s).ranks, 4);
  EXPECT_EQ(group_of(GroupKind::shard, s).stride, 4);
  EXPECT_EQ(group_of(GroupKind::replica, s).ranks, 4);
  EXPECT_EQ(group_of(GroupKind::replica, s).stride, 16);
}

TEST(Ranks, AGroupCountsItsNodes) {
  const Group data = {16, 4};
  EXPECT_EQ(data.ranks_per_node(8), 2);
  EXPECT_EQ(data.nodes(8), 8);
  const Group tensor = {4, 1};
  EXPECT_EQ(tensor.ranks_per_node(8), 4);
  EXPECT_EQ(tensor.nodes(8), 1);
  const Group wide = {16, 1};
  EXPECT_EQ(wide.ranks_per_node(8), 8);
  EXPECT_EQ(wide.nodes(8), 2);
  const Group pipeline = {3, 64};
  EXPECT_EQ(pipeline.ranks_per_node(8), 1);
  EXPECT_EQ(pipeline.nodes(8), 3);
}

}  // namespace
}  // namespace orrery

#include "model/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "model/build.h"
#include "model/test_models.h"

namespace orrery {
namespace {

// Head by head, query by query: one pair for each key seen, half for the query's own while its
// window is not yet full.
double pairs_one_by_one(const Attention& shape) {
  const std::int64_t window = shape.window > 0 ? shape.window : shape.keys;
  double pairs = 0;
  for (std::int64_t query = 0; query < shape.queries; ++query) {
    const std::int64_t position = shape.keys - shape.queries + query;
    for (std::int64_t key = 0; key < shape.keys; ++key) {
      if (key > position || key <= position - window) continue;
      pairs += key == position && position < window ? 0.5 : 1;
    }
  }
  return pairs;
}

Attention attention(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  return {.batch = 3,
          .heads = 8,
          .kv_heads = 2,
          .head_dim = 16,
          .queries = queries,
          .keys = keys,
          .causal = causal,
          .window = window};
}

TEST(AttendedPairs, EqualACountOneByOne) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t keys = 1 + draw(random, 60), queries = 1 + draw(random, keys);
    const std::int64_t window = draw(random, 2) ? 0 : 1 + draw(random, 70);
    const Attention shape = attention(queries, keys, true, window);
    EXPECT_DOUBLE_EQ(attended_pairs(shape), pairs_one_by_one(shape))
        << queries << " of " << keys << ", window " << window;
  }
}

TEST(AttendedPairs, FollowThePapersFormulas) {
  EXPECT_EQ(attended_pairs(attention(64, 64, false, 0)), 64 * 64);
  EXPECT_EQ(attended_pairs(attention(64, 64, true, 0)), 64 * 64 / 2);
  EXPECT_EQ(attended_pairs(attention(64, 64, true, 64)), 64 * 64 / 2);
  EXPECT_EQ(attended_pairs(attention(64, 64, true, 16)), 64 * 16 - 16 * 16 / 2);
  EXPECT_EQ(attended_pairs(attention(1, 64, false, 0)), 64);  // decode
}

TEST(FlopOf, AMatmulIsTwoPerMultiplyAdd) {
  EXPECT_EQ(flop_of(OpKind::matmul, Pass::weight_gradient, Matmul{3, 5, 7}), Flop(210));
}

// Dao 2023, section 4.1: 4 s^2 d heads forward, half of it when causal, 2.5 times that backward.
TEST(FlopOf, FusedAttentionRepeatsItsScoresInTheBackwardPass) {
  const Shape shape = attention(64, 64, true, 0);
  const double forward = 4.0 * 64 * 64 * 16 * 8 * 3 / 2;
  EXPECT_EQ(flop_of(OpKind::attention, Pass::forward, shape), Flop(forward));
  EXPECT_EQ(flop_of(OpKind::attention, Pass::data_gradient, shape), Flop(2.5 * forward));
  EXPECT_EQ(model_flop_of(OpKind::attention, Pass::data_gradient, shape), Flop(2 * forward));
}

TEST(FlopOf, TheUnfusedPartsAddUpToTheFusedForward) {
  const Shape shape = attention(64, 64, false, 0);
  const Flop whole = flop_of(OpKind::attention, Pass::forward, shape);
  for (const OpKind part : {OpKind::attention_scores, OpKind::attention_values}) {
    EXPECT_EQ(flop_of(part, Pass::forward, shape), whole / 2);
    EXPECT_EQ(flop_of(part, Pass::data_gradient, shape), whole);
  }
}

TEST(FlopOf, ElementwiseWorkIsNotMatrixWork) {
  EXPECT_EQ(flop_of(OpKind::norm, Pass::forward, Elementwise{8, 8, 6}), Flop(0));
}

OpId find(const Layer& layer, const std::string& name) {
  for (const OpId id : layer.ops.ids()) {
    if (layer.ops[id].name == name) return id;
  }
  ADD_FAILURE() << "no operator " << name;
  return {};
}

class WorkOf : public testing::Test {
 protected:
  WorkOf() : graph_(training_graph(llama_3_1_8b(), {.micro_batch = 2, .seq_len = 1024})) {}

  Work work(LayerId layer, const std::string& name) {
    return work_of(graph_.layers[layer], find(graph_.layers[layer], name));
  }

  OpGraph graph_;
  const double tokens_ = 2048;
};

TEST_F(WorkOf, AMatmulReadsBothOperandsAndWritesTheProduct) {
  const double n = (32 + 2 * 8) * 128, k = 4096;
  const Work qkv = work(graph_.body.front().layer, "qkv");
  EXPECT_EQ(qkv.flop, Flop(2 * tokens_ * n * k));
  EXPECT_EQ(qkv.read, Bytes(2 * (tokens_ * k + n * k)));
  EXPECT_EQ(qkv.written, Bytes(2 * tokens_ * n));
}

TEST_F(WorkOf, AGatedActivationReadsTwiceWhatItWrites) {
  const Work forward = work(graph_.body.front().layer, "activation");
  EXPECT_EQ(forward.read, Bytes(2 * tokens_ * 2 * 14336));
  EXPECT_EQ(forward.written, Bytes(2 * tokens_ * 14336));
  const Work backward = work(graph_.body.front().layer, "activation.dgrad");
  EXPECT_EQ(backward.read, Bytes(2 * tokens_ * 3 * 14336));
  EXPECT_EQ(backward.written, Bytes(2 * tokens_ * 2 * 14336));
}

TEST_F(WorkOf, ALookupReadsOnlyItsRows) {
  const Work lookup = work(graph_.embedding, "embedding");
  EXPECT_EQ(lookup.read, Bytes(2 * tokens_ * 4096));
  EXPECT_EQ(lookup.written, Bytes(2 * tokens_ * 4096));
}

TEST_F(WorkOf, FusedAttentionNeverTouchesTheScores) {
  const Work attention = work(graph_.body.front().layer, "attention");
  EXPECT_EQ(attention.read, Bytes(2 * tokens_ * (32 + 2 * 8) * 128));
  EXPECT_EQ(attention.written, Bytes(2 * tokens_ * 32 * 128 + 4 * tokens_ * 32));
}

}  // namespace
}  // namespace orrery

#include "core/id.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace orrery {
namespace {

using RankId = Id<struct RankTag>;
using LinkId = Id<struct LinkTag>;

template <class Vector, class Index>
concept CanIndex = requires(Vector vector, Index index) {
  vector[index];
};

using Names = IdVector<RankId, std::string>;
static_assert(CanIndex<Names, RankId>);
static_assert(!CanIndex<Names, LinkId>, "an id of something else must not index");
static_assert(!CanIndex<Names, int>, "a plain number must not index");
static_assert(!std::is_convertible_v<std::uint32_t, RankId>);
static_assert(!std::equality_comparable_with<RankId, LinkId>);
static_assert(RankId().is_none() && RankId::none() == RankId() && !RankId(0).is_none());

TEST(IdTest, none_has_no_index) { EXPECT_THROW(RankId::none().index(), ContractError); }

TEST(IdTest, order_and_hash_follow_the_index) {
  EXPECT_LT(RankId(1), RankId(2));
  std::unordered_set<RankId> seen = {RankId(1), RankId(1), RankId(2), RankId::none()};
  EXPECT_EQ(seen.size(), 3u);
}

TEST(IdVectorTest, push_back_returns_the_id_that_finds_the_value) {
  Names names;
  const RankId first = names.push_back("first");
  const RankId second = names.push_back("second");
  EXPECT_EQ(names[first], "first");
  names[second] = "changed";
  EXPECT_EQ(names[second], "changed");
  EXPECT_EQ(names.size(), 2u);
}

TEST(IdVectorTest, ids_walk_the_vector_in_order) {
  IdVector<RankId, int> squares;
  for (int i = 0; i < 5; ++i) squares.push_back(i * i);
  int visited = 0;
  for (const RankId id : squares.ids()) {
    EXPECT_EQ(squares[id], visited * visited);
    ++visited;
  }
  EXPECT_EQ(visited, 5);
}

TEST(IdVectorTest, refuses_an_id_out_of_range) {
  IdVector<RankId, int> values(3, 7);
  EXPECT_EQ(values[RankId(2)], 7);
  EXPECT_THROW(values[RankId(3)], ContractError);
  EXPECT_THROW(values[RankId::none()], ContractError);
}

TEST(IdVectorTest, holds_flags) {
  IdVector<RankId, bool> flags(2, false);
  flags[RankId(1)] = true;
  EXPECT_TRUE(flags[RankId(1)]);
  EXPECT_FALSE(flags[RankId(0)]);
}

}  // namespace
}  // namespace orrery

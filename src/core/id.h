// Ids that do not mix, and vectors that only their own id can index.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace orrery {

/// A number that names one Tag. Declare as `using RankId = Id<struct RankTag>;`.
template <class Tag>
class Id {
 public:
  using Index = std::uint32_t;

  constexpr Id() = default;  ///< none
  constexpr explicit Id(Index index) : index_(index) {}

  static constexpr Id none() { return Id(); }

  constexpr bool is_none() const { return index_ == kNone; }
  constexpr explicit operator bool() const { return !is_none(); }

  /// EXPECTs that the id is not none.
  constexpr Index index() const {
    EXPECT(!is_none());
    return index_;
  }

  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr Index kNone = std::numeric_limits<Index>::max();
  Index index_ = kNone;
};

/// The ids 0 … count-1, to loop over.
template <class IdType>
class IdRange {
 public:
  using Index = typename IdType::Index;

  struct Iterator {
    Index index;
    constexpr IdType operator*() const { return IdType(index); }
    constexpr Iterator& operator++() { return ++index, *this; }
    constexpr bool operator==(const Iterator&) const = default;
  };

  constexpr explicit IdRange(Index count) : count_(count) {}
  constexpr Iterator begin() const { return {0}; }
  constexpr Iterator end() const { return {count_}; }

 private:
  Index count_;
};

/// A vector of T that is indexed by IdType and nothing else; a wrong id breaks a contract.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t count, const T& value = T()) : values_(count, value) {}

  IdType push_back(T value) {
    const IdType id = next_id();
    values_.push_back(std::move(value));
    return id;
  }

  decltype(auto) operator[](IdType id) {
    EXPECT(contains(id));
    return values_[id.index()];
  }
  decltype(auto) operator[](IdType id) const {
    EXPECT(contains(id));
    return values_[id.index()];
  }

  bool contains(IdType id) const { return id && id.index() < values_.size(); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  void reserve(std::size_t count) { values_.reserve(count); }

  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  /// Every id in order: `for (const RankId rank : ranks.ids())`.
  IdRange<IdType> ids() const {
    return IdRange<IdType>(static_cast<typename IdType::Index>(values_.size()));
  }

  bool operator==(const IdVector&) const = default;

 private:
  IdType next_id() const {
    EXPECT(values_.size() < std::numeric_limits<typename IdType::Index>::max());
    return IdType(static_cast<typename IdType::Index>(values_.size()));
  }

  std::vector<T> values_;
};

}  // namespace orrery

template <class Tag>
struct std::hash<orrery::Id<Tag>> {
  std::size_t operator()(orrery::Id<Tag> id) const noexcept {
    return id ? std::hash<std::uint32_t>{}(id.index()) : ~std::size_t{0};
  }
};

#include "plan/ranks.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace orrery {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t Group::ranks_per_node(std::int64_t gpus_per_node) const {
  EXPECT(gpus_per_node >= 1);
  return std::min(ceil_div(gpus_per_node, stride), ranks);
}

std::int64_t Group::nodes(std::int64_t gpus_per_node) const {
  return ceil_div(ranks, ranks_per_node(gpus_per_node));
}

std::int64_t shard_ranks(const Strategy& strategy) {
  return strategy.shard_ranks > 0 ? strategy.shard_ranks : strategy.dp * strategy.cp;
}

std::int64_t expert_shard_ranks(const Strategy& strategy) {
  const std::int64_t shard = shard_ranks(strategy) * strategy.tp / (strategy.ep * strategy.etp);
  return std::gcd(std::max<std::int64_t>(shard, 1), strategy.expert_replicas());
}

Group group_of(GroupKind kind, const Strategy& s) {
  const std::int64_t stage = s.tp * s.cp * s.dp;  // ranks of one pipeline stage
  const std::int64_t shard = shard_ranks(s);
  switch (kind) {
    case GroupKind::tensor:
      return {s.tp, 1};
    case GroupKind::context:
      return {s.cp, s.tp};
    case GroupKind::data:
      return {s.dp * s.cp, s.tp};
    case GroupKind::shard:
      return {shard, s.tp};
    case GroupKind::replica:
      return {s.dp * s.cp / shard, s.tp * shard};
    case GroupKind::pipeline:
      return {s.pp, stage};
    case GroupKind::embedding:
    case GroupKind::mirror:
      return {s.pp > 1 ? 2 : 1, stage * (s.pp - 1)};
    case GroupKind::expert:
      return {s.ep, s.etp};
    case GroupKind::expert_tensor:
      return {s.etp, 1};
    case GroupKind::expert_shard:
      return {expert_shard_ranks(s), s.ep * s.etp};
    case GroupKind::expert_replica:
      return {s.expert_replicas() / expert_shard_ranks(s), s.ep * s.etp * expert_shard_ranks(s)};
  }
  return {};
}

std::string_view name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tensor:
      return "tensor";
    case GroupKind::context:
      return "context";
    case GroupKind::data:
      return "data";
    case GroupKind::shard:
      return "shard";
    case GroupKind::replica:
      return "replica";
    case GroupKind::pipeline:
      return "pipeline";
    case GroupKind::embedding:
      return "embedding";
    case GroupKind::mirror:
      return "mirror";
    case GroupKind::expert:
      return "expert";
    case GroupKind::expert_tensor:
      return "expert tensor";
    case GroupKind::expert_shard:
      return "expert shard";
    case GroupKind::expert_replica:
      return "expert replica";
  }
  return "";
}

}  // namespace orrery

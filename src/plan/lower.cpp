#include "plan/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "plan/lowering.h"

namespace orrery {
namespace {

std::string text_of(const Shape& shape) {
  if (const auto* m = std::get_if<Matmul>(&shape)) {
    return fmt::format("{} {} {} {}", m->m, m->n, m->k, m->groups);
  }
  if (const auto* a = std::get_if<Attention>(&shape)) {
    return fmt::format("{} {} {} {} {} {} {} {} {} {}", a->batch, a->heads, a->kv_heads,
                       a->head_dim, a->queries, a->keys, a->causal, a->window, a->value_dim,
                       a->documents);
  }
  if (const auto* w = std::get_if<Stated>(&shape)) {
    return fmt::format("{} {} {}", w->rows, w->flop, w->bytes);
  }
  const auto& e = std::get<Elementwise>(shape);
  return fmt::format("{} {} {}", e.rows, e.width, e.flop_per_element);
}

std::string key_of(const Kernel& k) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", k.name, static_cast<int>(k.kind),
                     static_cast<int>(k.pass), text_of(k.shape), static_cast<int>(k.precision),
                     k.read.value(), k.written.value(), k.flop.value(), k.recomputed,
                     k.dequantised);
}

}  // namespace

KernelId Lowering::kernel(const Layer& layer, const Turn& turn) {
  KernelId& known = turns[{&layer, turn.op, turn.recomputed, turn.share}];
  if (known) return known;
  Kernel kernel = local.kernel(layer, turn);
  const auto [found, is_new] = kernels.try_emplace(key_of(kernel));
  if (is_new) found->second = program.kernels.push_back(std::move(kernel));
  return known = found->second;
}

CommId Lowering::comm(CollectiveOp op, GroupKind kind, Bytes size, Precision dtype,
                      std::int64_t copies) {
  const std::string key =
      fmt::format("{} {} {} {} {}", static_cast<int>(op), static_cast<int>(kind), size.value(),
                  static_cast<int>(dtype), copies);
  const auto [found, is_new] = comms.try_emplace(key);
  if (is_new) {
    found->second =
        program.comms.push_back({op, kind, group_of(kind, strategy), size, dtype, copies});
  }
  return found->second;
}

std::vector<std::vector<std::int64_t>> layer_split(const Strategy& s, std::int64_t layers) {
  const Placement placement(s.schedule, s.pp, s.vpp);
  const auto parts = layer_split(layers, placement.parts(), 1);
  std::vector<std::vector<std::int64_t>> split(s.pp, std::vector<std::int64_t>(placement.chunks()));
  for (std::int64_t stage = 0; stage < s.pp; ++stage) {
    for (std::int64_t chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::int64_t part = placement.part({stage, chunk});
      split[stage][chunk] = s.stage_layers.empty() ? parts[part][0] : s.stage_layers[part];
    }
  }
  return split;
}

std::vector<std::vector<std::int64_t>> layer_split(std::int64_t layers, std::int64_t pp,
                                                   std::int64_t vpp) {
  const std::int64_t slots = pp * vpp;
  const bool ends_count = layers % slots != 0 && layers_fit(layers, pp, vpp);
  const std::int64_t places = ends_count ? layers + 2 : layers;
  std::vector<std::vector<std::int64_t>> split(pp, std::vector<std::int64_t>(vpp));
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    split[slot % pp][slot / pp] = places / slots + (slot < places % slots ? 1 : 0);
  }
  if (ends_count) {
    --split.front().front();
    --split.back().back();
  }
  return split;
}

std::vector<Run> Lowering::body_of(std::int64_t stage, std::int64_t chunk) const {
  std::int64_t first = 0;  // of the stack's layers
  for (std::int64_t part = 0; part < placement.part({stage, chunk}); ++part) {
    const Place before = placement.place(part);
    first += split[before.stage][before.chunk];
  }
  std::int64_t left = split[stage][chunk];
  std::vector<Run> found;
  for (const Run& run : graph.body) {
    const std::int64_t skipped = std::min(first, run.count);
    const std::int64_t taken = std::min(left, run.count - skipped);
    if (taken > 0) found.push_back({run.layer, taken});
    first -= skipped;
    left -= taken;
  }
  return found;
}

std::vector<Run> Lowering::layers_of(std::int64_t stage) const {
  std::vector<Run> found;
  const auto append = [&](const std::vector<Run>& runs) {
    found.insert(found.end(), runs.begin(), runs.end());
  };
  for (std::int64_t chunk = 0; chunk < placement.chunks(); ++chunk) {
    if (!placement.previous({stage, chunk})) append(graph.front);
    append(body_of(stage, chunk));
    if (!placement.next({stage, chunk})) append(graph.back);
  }
  return found;
}

Program lower(const OpGraph& graph, const Strategy& strategy, const Recipe& recipe) {
  EXPECT(graph.batch == strategy.micro_batch && graph.seq_len == strategy.seq_len);
  EXPECT(strategy.global_batch % (strategy.dp * strategy.micro_batch) == 0);
  EXPECT((strategy.dp * strategy.cp) % shard_ranks(strategy) == 0);
  EXPECT((strategy.tp * strategy.cp * strategy.dp) % (strategy.ep * strategy.etp) == 0);
  Lowering lowering = {graph,
                       strategy,
                       recipe,
                       Local(strategy),
                       Placement(strategy.schedule, strategy.pp, strategy.vpp),
                       layer_split(strategy, graph.depth()),
                       {},
                       {},
                       {},
                       {}};
  lowering.program.tokens = strategy.global_batch * strategy.seq_len;
  for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
    lowering.program.classes.push_back(lower_stage(lowering, stage));
  }
  return std::move(lowering.program);
}

}  // namespace orrery

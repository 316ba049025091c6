#include "twin/power.h"

#include <algorithm>

#include "cost/power.h"

namespace orrery {
namespace {

bool uses_matrix_units(OpKind kind) {
  return kind == OpKind::matmul || kind == OpKind::attention || kind == OpKind::attention_scores ||
         kind == OpKind::attention_values || kind == OpKind::matrix_work;
}

GpuWork work_of(const Kernel& kernel) {
  const bool matrix = uses_matrix_units(kernel.kind);
  return {.matrix = matrix ? kernel.flop : Flop(0),
          .precision = kernel.precision,
          .vector = matrix ? Flop(0) : kernel.flop,
          .memory = kernel.read + kernel.written};
}

// Calls `visit(instruction, times)` for everything that a rank of the class does in a step.
template <class Visit>
void walk(const RankClass& ranks, const std::vector<Instruction>& body, std::int64_t times,
          const Visit& visit) {
  for (const Instruction& instruction : body) {
    visit(instruction, times);
    if (const auto* call = std::get_if<Call>(&instruction.what)) {
      walk(ranks, ranks.blocks[call->block].body, times, visit);
    } else if (const auto* loop = std::get_if<Loop>(&instruction.what)) {
      walk(ranks, loop->body, times * loop->count, visit);
    }
  }
}

Joules energy_of(const PowerModel& model, const Program& program, const Prices& prices,
                 const RankClass& ranks, Watts limit) {
  Joules sum;
  const IdVector<KernelId, std::int64_t> launches = launches_of(program, ranks);
  for (const KernelId id : program.kernels.ids()) {
    if (launches[id] == 0) continue;
    sum += static_cast<double>(launches[id]) *
           energy_under(limit, model, work_of(program.kernels[id]), prices.kernels[id]);
  }
  walk(ranks, ranks.step, 1, [&](const Instruction& instruction, std::int64_t times) {
    if (const auto* update = std::get_if<Update>(&instruction.what)) {
      sum += static_cast<double>(times) * (update->read + update->written) * model.memory;
    }
  });
  return sum;
}

}  // namespace

IdVector<KernelId, std::int64_t> launches_of(const Program& program, const RankClass& ranks) {
  IdVector<KernelId, std::int64_t> counts(program.kernels.size(), 0);
  walk(ranks, ranks.step, 1, [&](const Instruction& instruction, std::int64_t times) {
    if (const auto* compute = std::get_if<Compute>(&instruction.what)) {
      counts[compute->kernel] += times;
    }
  });
  return counts;
}

Watts mean_gpu_power(const Program& program, const Prices& prices, const Gpu& gpu, Seconds step,
                     Watts limit) {
  const PowerModel model = power_model_of(gpu);
  Watts sum;
  double count = 0;
  for (const RankClass& ranks : program.classes) {
    const double here = static_cast<double>(ranks.ranks);
    sum += here *
           std::min(limit, model.floor + energy_of(model, program, prices, ranks, limit) / step);
    count += here;
  }
  return sum / count;
}

}  // namespace orrery

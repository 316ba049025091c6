// A plain reader of Programs for the tests: every instruction visited, memory summed, slow and
// obvious.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/test_models.h"
#include "plan/lower.h"

namespace orrery {

// Calls `visit` for each instruction in program order, loops unrolled and blocks entered.
inline void each_instruction(const RankClass& ranks, const std::vector<Instruction>& body,
                             const std::function<void(const Instruction&)>& visit) {
  for (const Instruction& instruction : body) {
    if (const auto* loop = std::get_if<Loop>(&instruction.what)) {
      for (std::int64_t i = 0; i < loop->count; ++i) each_instruction(ranks, loop->body, visit);
    } else if (const auto* call = std::get_if<Call>(&instruction.what)) {
      visit(instruction);
      each_instruction(ranks, ranks.blocks[call->block].body, visit);
    } else {
      visit(instruction);
    }
  }
}
inline void each_instruction(const RankClass& ranks,
                             const std::function<void(const Instruction&)>& visit) {
  each_instruction(ranks, ranks.step, visit);
}

struct Memory {
  std::array<double, 8> now = {}, peak = {};  // by MemoryTerm; peak: at the peak of the sum
  double total = 0, peak_total = 0;
  double highest_activations = 0;  // the most of that term alone
  bool negative = false;
  std::map<std::uint32_t, std::int64_t> instances;  // by BufferId, at the end

  double at_peak(MemoryTerm term) const { return peak[static_cast<std::size_t>(term)]; }
};

inline Memory memory_of(const RankClass& ranks) {
  Memory memory;
  const auto change = [&](BufferId id, std::int64_t count) {
    const Buffer& buffer = ranks.buffers[id];
    const double bytes = buffer.size.value() * static_cast<double>(count);
    memory.now[static_cast<std::size_t>(buffer.term)] += bytes;
    memory.total += bytes;
    memory.negative |= (memory.instances[id.index()] += count) < 0;
    if (memory.total > memory.peak_total)
      memory.peak_total = memory.total, memory.peak = memory.now;
    memory.highest_activations = std::max(
        memory.highest_activations, memory.now[static_cast<std::size_t>(MemoryTerm::activations)]);
  };
  each_instruction(ranks, [&](const Instruction& instruction) {
    if (const auto* alloc = std::get_if<Alloc>(&instruction.what)) {
      change(alloc->buffer, alloc->count);
    }
    if (const auto* move = std::get_if<Move>(&instruction.what)) {
      change(move->from, -1);
      change(move->to, 1);
    }
    if (const auto* free = std::get_if<Free>(&instruction.what)) change(free->buffer, -free->count);
  });
  return memory;
}

// Bytes handed to one kind of collective on one kind of group in a step.
inline double volume(const Program& program, const RankClass& ranks, CollectiveOp op,
                     GroupKind kind) {
  double sum = 0;
  each_instruction(ranks, [&](const Instruction& instruction) {
    const auto* collective = std::get_if<Collective>(&instruction.what);
    if (!collective) return;
    const Comm& comm = program.comms[collective->comm];
    if (comm.op == op && comm.kind == kind) sum += comm.size.value();
  });
  return sum;
}
inline std::int64_t launches(const Program& program, const RankClass& ranks, CollectiveOp op,
                             GroupKind kind) {
  std::int64_t count = 0;
  each_instruction(ranks, [&](const Instruction& instruction) {
    const auto* collective = std::get_if<Collective>(&instruction.what);
    if (!collective) return;
    const Comm& comm = program.comms[collective->comm];
    count += comm.op == op && comm.kind == kind;
  });
  return count;
}

struct Trained {
  OpGraph graph;
  Program program;
};

inline Trained trained(const Architecture& model, const Strategy& s, const Recipe& recipe = {},
                       bool flash = true, bool dropout = false) {
  GraphOptions options;
  options.micro_batch = s.micro_batch;
  options.seq_len = s.seq_len;
  options.flash_attention = flash;
  options.dropout = dropout;
  OpGraph graph = training_graph(model, options);
  Program program = lower(graph, s, recipe);
  return {std::move(graph), std::move(program)};
}

}  // namespace orrery

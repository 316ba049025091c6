#include "cost/memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "core/error.h"
#include "cost/program_builder.h"

namespace orrery {
namespace {

using testing::alloc;
using testing::Body;
using testing::call;
using testing::loop;
using testing::ProgramBuilder;
using testing::release;

Bytes of(const Footprint& footprint, MemoryTerm term) {
  return footprint[static_cast<std::size_t>(term)];
}

TEST(Memory, AnEmptyStepHoldsNothing) {
  ProgramBuilder builder;
  builder.add_class();
  EXPECT_EQ(total(peak_memory(builder.program).footprint), Bytes());
}

TEST(Memory, ThePeakIsMadeOfWhatIsHeldAtThatInstant) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const BufferId weights = builder.buffer(id, MemoryTerm::weights, Bytes(10));
  const BufferId saved = builder.buffer(id, MemoryTerm::activations, Bytes(3));
  const BufferId scratch = builder.buffer(id, MemoryTerm::workspace, Bytes(4));
  const BlockId forward =
      builder.block(id, {loop(8, {alloc(scratch), alloc(saved), release(scratch)})});
  const BlockId backward =
      builder.block(id, {loop(8, {alloc(scratch), release(scratch), release(saved)})});
  builder.step(id) = {alloc(weights), loop(5, {call(forward), call(backward)})};

  const Peak peak = peak_memory(builder.program);
  EXPECT_EQ(peak.at, id);
  EXPECT_EQ(of(peak.footprint, MemoryTerm::weights), Bytes(10));
  EXPECT_EQ(of(peak.footprint, MemoryTerm::activations), Bytes(24));
  EXPECT_EQ(of(peak.footprint, MemoryTerm::workspace), Bytes(4));
  EXPECT_EQ(total(peak.footprint), Bytes(38));
}

TEST(Memory, TheBuffersOfThePeakAreListedLargestFirst) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const BufferId weights = builder.buffer(id, MemoryTerm::weights, Bytes(10));
  const BufferId saved = builder.buffer(id, MemoryTerm::activations, Bytes(3));
  const BufferId scratch = builder.buffer(id, MemoryTerm::workspace, Bytes(4));
  const BufferId away = builder.buffer(id, MemoryTerm::host, Bytes(1000));
  const BlockId forward =
      builder.block(id, {loop(8, {alloc(scratch), alloc(saved), release(scratch)})});
  builder.step(id) = {alloc(weights), alloc(away), call(forward), release(saved, 8)};

  EXPECT_EQ(total(peak_memory(builder.program).footprint), Bytes(38));
  const std::vector<HeldBuffer> held = held_at_peak(builder.program.classes[id]);
  ASSERT_EQ(held.size(), 3U);
  EXPECT_EQ(held[0].size, Bytes(24));
  EXPECT_EQ(held[0].instances, 8);
  EXPECT_EQ(held[0].term, MemoryTerm::activations);
  EXPECT_EQ(held[1].size, Bytes(10));
  EXPECT_EQ(held[2].size, Bytes(4));
}

TEST(Memory, AShrinkingLoopPeaksInItsFirstTurn) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const BufferId saved = builder.buffer(id, MemoryTerm::activations, Bytes(5));
  const BufferId scratch = builder.buffer(id, MemoryTerm::workspace, Bytes(2));
  builder.step(id) = {alloc(saved, 6), loop(6, {alloc(scratch), release(scratch), release(saved)})};
  EXPECT_EQ(total(peak_memory(builder.program).footprint), Bytes(32));
}

TEST(Memory, TheClassThatHoldsMostDecides) {
  ProgramBuilder builder;
  const ClassId first = builder.add_class(), second = builder.add_class();
  builder.step(first) = {alloc(builder.buffer(first, MemoryTerm::weights, Bytes(1)))};
  builder.step(second) = {alloc(builder.buffer(second, MemoryTerm::logits, Bytes(2)))};
  const Peak peak = peak_memory(builder.program);
  EXPECT_EQ(peak.at, second);
  EXPECT_EQ(total(peak.by_class[first]), Bytes(1));
  EXPECT_EQ(of(peak.footprint, MemoryTerm::logits), Bytes(2));
}

TEST(Memory, FreeingWhatIsNotThereBreaksAContract) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const BufferId saved = builder.buffer(id, MemoryTerm::activations, Bytes(5));
  builder.step(id) = {alloc(saved, 3), loop(4, {release(saved)}), alloc(saved, 9)};
  EXPECT_THROW(peak_memory(builder.program), ContractError);
  builder.step(id) = {release(saved), alloc(saved)};
  EXPECT_THROW(peak_memory(builder.program), ContractError);
}

TEST(Memory, ABlockThatCallsItselfBreaksAContract) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  builder.block(id, {call(BlockId(0))});
  builder.step(id) = {call(BlockId(0))};
  EXPECT_THROW(peak_memory(builder.program), ContractError);
}

TEST(Memory, LoopsAreFoldedNotPlayed) {
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  const BufferId saved = builder.buffer(id, MemoryTerm::activations, Bytes(1));
  Body body = {alloc(saved)};
  for (int depth = 0; depth < 6; ++depth) body = {loop(1000, body)};
  builder.step(id) = body;
  EXPECT_EQ(total(peak_memory(builder.program).footprint), Bytes(1e18));
}

// --- against the obvious walk -------------------------------------------------------------------

struct Naive {
  const RankClass& ranks;
  Footprint held{}, peak{};
  std::vector<std::int64_t> instances = std::vector<std::int64_t>(ranks.buffers.size());
  bool below_zero = false;

  void play(const Body& body) {
    for (const Instruction& instruction : body) {
      if (const auto* a = std::get_if<Alloc>(&instruction.what)) change(a->buffer, a->count);
      if (const auto* f = std::get_if<Free>(&instruction.what)) change(f->buffer, -f->count);
      if (const auto* c = std::get_if<Call>(&instruction.what)) play(ranks.blocks[c->block].body);
      if (const auto* l = std::get_if<Loop>(&instruction.what))
        for (std::int64_t turn = 0; turn < l->count; ++turn) play(l->body);
    }
  }
  void change(BufferId id, std::int64_t count) {
    const Buffer& buffer = ranks.buffers[id];
    held[static_cast<std::size_t>(buffer.term)] += buffer.size * static_cast<double>(count);
    below_zero |= (instances[id.index()] += count) < 0;
    if (total(held) > total(peak)) peak = held;
  }
};

Program random_program(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
  ProgramBuilder builder;
  const ClassId id = builder.add_class();
  for (std::size_t term = 0; term < memory_terms; ++term)
    builder.buffer(id, static_cast<MemoryTerm>(term), Bytes(static_cast<double>(1 + below(50))));
  const std::function<Body(int)> body = [&](int depth) {
    Body made;
    for (std::int64_t n = 1 + below(5); n > 0; --n) {
      const BufferId buffer(static_cast<std::uint32_t>(below(memory_terms)));
      const std::int64_t kind = below(5);
      if (kind == 0 && depth > 0) {
        made.push_back(loop(below(5), body(depth - 1)));
      } else if (kind == 1 && depth > 0) {
        if (below(2) == 0 || builder.program.classes[id].blocks.empty())
          made.push_back(call(builder.block(id, body(depth - 1))));
        else
          made.push_back(call(BlockId(0)));
      } else if (kind < 4) {
        made.push_back(alloc(buffer, 1 + below(2)));
      } else {
        made.push_back(release(buffer, 1));
      }
    }
    return made;
  };
  const Body start = body(0), rest = body(3);
  builder.step(id) = start;
  builder.step(id).insert(builder.step(id).end(), rest.begin(), rest.end());
  return builder.program;
}

TEST(Memory, FoldingEqualsTheUnrolledWalkOnRandomPrograms) {
  int valid = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const Program program = random_program(random);
    const RankClass& ranks = program.classes[ClassId(0)];
    Naive naive{ranks};
    naive.play(ranks.step);
    if (naive.below_zero) {
      EXPECT_THROW(peak_memory(program), ContractError) << "seed " << seed;
    } else {
      ++valid;
      EXPECT_EQ(peak_memory(program).footprint, naive.peak) << "seed " << seed;
      Footprint held{};
      for (const HeldBuffer& buffer : held_at_peak(ranks)) {
        held[static_cast<std::size_t>(buffer.term)] += buffer.size;
      }
      Footprint on_gpu = naive.peak;
      on_gpu[static_cast<std::size_t>(MemoryTerm::host)] = Bytes();
      EXPECT_EQ(held, on_gpu) << "seed " << seed;
    }
  }
  EXPECT_GT(valid, 500);
}

}  // namespace
}  // namespace orrery

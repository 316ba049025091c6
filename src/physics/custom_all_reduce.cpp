#include "physics/custom_all_reduce.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace orrery {
namespace {

using P = CustomAllReduceParameters;
constexpr std::array<Parameter<P>, 8> parameter_table = {{
    {{"host", 0.1e-6, 100e-6, 15e-6, "a call without a graph"}, &P::host},
    {{"start", 1e-6, 20e-6, 4e-6, "of the kernel"}, &P::start},
    {{"peer", 0.01e-6, 2e-6, 0.1e-6, "one rank more"}, &P::peer},
    {{"one_shot_rate", 0.1, 1, 0.6, "share of the links"}, &P::one_shot_rate},
    {{"two_shots", 0.1e-6, 20e-6, 4e-6, "a second barrier"}, &P::two_shots},
    {{"two_shot_rate", 0.1, 1, 0.6, "share of the links"}, &P::two_shot_rate},
    {{"symmetric_start", 1e-6, 50e-6, 8e-6, "of the switch's sums"}, &P::symmetric_start},
    {{"symmetric_rate", 0.1, 1, 0.5, "share of the links"}, &P::symmetric_rate},
}};

constexpr double kib = 1 << 10, mib = 1 << 20;

// vLLM's and SGLang's csrc/custom_all_reduce.cuh: two ranks always read all.
bool reads_all(const CustomAllReduceShape& shape) {
  const double size = shape.size.value();
  if (shape.engine == Engine::tensorrt_llm || shape.ranks == 2) return true;
  return size < (shape.ranks <= 4 ? 512 * kib : 256 * kib);
}

// vLLM's buffers hold less than 8 MiB, SGLang's that much. TensorRT-LLM chooses by tables of its
// own; these are the last sizes at which its timings part from NCCL's.
bool fits_buffers(const CustomAllReduceShape& shape) {
  const double size = shape.size.value();
  switch (shape.engine) {
    case Engine::vllm:
      return size < 8 * mib;
    case Engine::sglang:
      return size <= 8 * mib;
    case Engine::tensorrt_llm:
      if (shape.architecture < GpuArchitecture::hopper) return size <= mib;
      return size <= (shape.ranks == 2 ? 8 * mib : shape.ranks <= 4 ? mib : 0.5 * mib);
  }
  return false;
}

// vLLM on Hopper: torch's symmetric memory, whose buffer holds 64 MiB.
bool is_symmetric(const CustomAllReduceShape& shape) {
  return shape.engine == Engine::vllm && shape.architecture >= GpuArchitecture::hopper &&
         shape.size <= Bytes(64 * mib);
}

}  // namespace

std::span<const Parameter<P>> CustomAllReduceParameters::parameters() { return parameter_table; }

AllReduceWay all_reduce_way(const CustomAllReduceShape& shape) {
  if (shape.ranks > 8) return AllReduceWay::nccl;
  if (fits_buffers(shape)) {
    return reads_all(shape) ? AllReduceWay::one_shot : AllReduceWay::two_shot;
  }
  return is_symmetric(shape) ? AllReduceWay::symmetric : AllReduceWay::nccl;
}

KernelTime custom_all_reduce_time(const CustomAllReduceShape& shape, const P& p,
                                  const Device& device) {
  EXPECT(shape.ranks >= 2 && shape.size > Bytes() && shape.link > BytesPerSecond());
  const AllReduceWay way = all_reduce_way(shape);
  EXPECT(way != AllReduceWay::nccl);
  const auto n = static_cast<double>(shape.ranks);
  KernelTime answer;
  Seconds moved;
  switch (way) {
    case AllReduceWay::one_shot:
      answer.start = p.start + (n - 1) * p.peer;
      moved = (n - 1) * shape.size / (shape.link * p.one_shot_rate);
      break;
    case AllReduceWay::two_shot:
      answer.start = p.start + p.two_shots + 2 * (n - 1) * p.peer;
      moved = 2 * (n - 1) / n * shape.size / (shape.link * p.two_shot_rate);
      break;
    default:
      answer.start = p.symmetric_start;
      moved = shape.size / (shape.link * p.symmetric_rate);
  }
  answer.bytes = (shape.copied ? 4.0 : 2.0) * shape.size;
  if (shape.copied) moved += 2 * shape.size / device.memory;
  answer.time = std::max(answer.start + moved, p.host);
  answer.memory = answer.bytes / device.memory;
  answer.bound = moved > 0.5 * answer.time ? Bound::links : Bound::latency;
  answer.clock = device.boost;
  answer.power =
      std::min(device.limit, device.power.floor + answer.bytes * device.power.memory / answer.time);
  return answer;
}

}  // namespace orrery

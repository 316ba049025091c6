// How long the all-reduce kernels of inference engines take, which replace NCCL for small messages
// on one node.
#pragma once

#include <cstdint>
#include <span>

#include "physics/device.h"
#include "physics/kernel_time.h"
#include "physics/parameters.h"

namespace orrery {

enum class Engine { vllm, sglang, tensorrt_llm };

struct CustomAllReduceShape {
  Engine engine = Engine::vllm;
  GpuArchitecture architecture = GpuArchitecture::hopper;
  std::int64_t ranks = 2;
  Bytes size;
  BytesPerSecond link;  ///< of one GPU, per direction, as printed
  bool copied = false;  ///< into a registered buffer first, as outside CUDA graphs
};

/// Which kernel an engine takes: every rank reads all of every other's vector; or each sums its
/// part and then gathers; or the switch sums symmetric memory; or NCCL.
enum class AllReduceWay { one_shot, two_shot, symmetric, nccl };
AllReduceWay all_reduce_way(const CustomAllReduceShape& shape);

/// With n ranks and shares of the links' printed rate, on top of `host` if that is longer:
///   one shot   start + (n - 1) peer + (n - 1) size / one_shot_rate
///   two shots  start + two_shots + 2 (n - 1) peer + 2 (n - 1) / n size / two_shot_rate
///   symmetric  symmetric_start + size / symmetric_rate
struct CustomAllReduceParameters {
  Seconds host;  ///< of a call without a graph, at least
  Seconds start, peer;
  double one_shot_rate = 0.6;
  Seconds two_shots;  ///< a second barrier
  double two_shot_rate = 0.6;
  Seconds symmetric_start;
  double symmetric_rate = 0.5;

  static std::span<const Parameter<CustomAllReduceParameters>> parameters();
};

/// EXPECTs a shape that is not NCCL's. Grows with the size as long as the way is the same.
KernelTime custom_all_reduce_time(const CustomAllReduceShape& shape,
                                  const CustomAllReduceParameters& parameters,
                                  const Device& device);

}  // namespace orrery

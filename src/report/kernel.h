// One operator on one GPU: how long, what bounds it, and where it lies under the roofline.
#pragma once

#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catalog/gpu.h"
#include "catalog/kernel_sets.h"
#include "core/json.h"
#include "physics/kernel_time.h"
#include "report/tables.h"
#include "tables/kernel_evidence.h"

namespace orrery {

/// How a kernel lies on the SMs, where its model says so.
struct KernelTiles {
  std::int64_t tile_m = 0, tile_n = 0, splits = 1;
  double ctas = 0;
  double sms = 0;

  double whole_waves() const;
  double last_wave() const;  ///< share of the SMs that the last wave fills
};

/// Of a collective.
struct KernelLinks {
  std::string protocol;  ///< of NCCL
  BytesPerSecond size_rate;
  double bus_factor = 1;  ///< what a rank's links carry, over the size

  BytesPerSecond bus() const { return size_rate * bus_factor; }
};

struct KernelAnswer {
  std::string op;                                          ///< as asked: "rmsnorm"
  std::vector<std::pair<std::string, std::string>> shape;  ///< flags and values
  std::string gpu;
  Watts limit;
  Precision unit = Precision::bf16;
  FlopPerSecond peak;        ///< of that unit, as published
  BytesPerSecond bandwidth;  ///< of memory, likewise
  KernelTime time;
  std::optional<KernelTiles> tiles;
  std::optional<KernelLinks> links;
  std::string warning;  ///< empty: none
  bool far = false;     ///< the model itself says that no timing is near
  std::string variant;  ///< that was asked for; the set may be of another
  FoundSet found;
  KernelRecord record;

  Joules energy() const { return time.power * time.time; }
  FlopPerSecond rate() const { return time.flop / time.time; }
  BytesPerSecond traffic() const { return time.bytes / time.time; }
  FlopPerByte intensity() const { return time.flop / time.bytes; }
  FlopPerByte ridge() const { return peak / bandwidth; }
  FlopPerSecond attainable() const;
};

/// `explain` adds where the time goes and every parameter with its meaning.
void print_kernel(std::ostream& out, const KernelAnswer& answer, const Style& style, bool explain);
Json kernel_json(const KernelAnswer& answer, bool explain);

/// A header and a line for each answer, the first column named `swept`.
std::string kernel_csv(std::string_view swept, std::span<const KernelAnswer> answers);

}  // namespace orrery

// How far kernel models were from published timings: what an answer says of its own record.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/kernel_sets.h"
#include "core/json.h"
#include "physics/kernel_time.h"
#include "units/quantity.h"

namespace orrery {

/// A published timing, and where it lies: by its work and its traffic.
struct KernelLandmark {
  std::int64_t line = 0;  ///< of its table
  std::string shape;
  Flop flop;
  Bytes bytes;
  Seconds measured;
};

/// Rows of one operator, variant, library and GPU whose predicted times fall into one band.
struct KernelBand {
  std::int64_t n = 0;
  double low = 1, high = 1;  ///< tenth and ninetieth percentile of measured / predicted
};

/// Of predicted times: below 20 us, to 100 us, to 1 ms, above.
inline constexpr std::size_t kernel_bands = 4;
std::size_t band_of(Seconds predicted);

struct KernelEvidence {
  std::string op, variant, library, gpu, source;
  std::int64_t n = 0;
  double median = 0;  ///< of |predicted / measured - 1|
  std::array<KernelBand, kernel_bands> bands;
  std::vector<KernelLandmark> landmarks;  ///< some of the rows, spread over their work

  std::string name() const;  ///< "gemm bf16 tensorrt-llm h100-sxm"
};

struct KernelRecord {
  std::string group;
  std::int64_t n = 0;
  double median_abs_error = 0;
  std::string nearest;        ///< shape and time of the published row most like it; empty: none
  bool extrapolated = false;  ///< another GPU or library's record, none, or no row within reach
  Seconds low, high;          ///< four of five measured values lie within
};

/// What is claimed where there is no record: 30 % either way.
inline constexpr double unseen_kernel_spread = 0.3;
/// Doublings of work and traffic together from the nearest row beyond which an answer is
/// extrapolated.
inline constexpr double far_from_rows = 4;

/// `found` is the set that priced it.
KernelRecord record_of(std::span<const KernelEvidence> table, const FoundSet& found,
                       const KernelTime& predicted);

/// Of data_dir/kernel_evidence.json; empty where there is none.
std::vector<KernelEvidence> load_kernel_evidence(const std::string& data_dir);
std::vector<KernelEvidence> kernel_evidence_from_json(const Json& json, const std::string& place);
Json to_json(std::span<const KernelEvidence> table);

}  // namespace orrery

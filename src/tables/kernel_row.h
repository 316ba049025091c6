// One published timing of a kernel or a collective, as a question for its model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "physics/attention_shape.h"
#include "physics/collective.h"
#include "physics/custom_all_reduce.h"
#include "physics/expert_exchange.h"
#include "physics/gemm.h"
#include "physics/mla.h"
#include "physics/traffic.h"
#include "units/quantity.h"

namespace orrery {

using KernelShape =
    std::variant<AttentionShape, GemmShape, TrafficShape, CollectiveShape, MlaPrefillShape,
                 MlaDecodeShape, CustomAllReduceShape, ExpertExchangeShape>;

struct KernelRow {
  std::int64_t line = 0;  ///< of its table
  std::string gpu;        ///< catalog name, or what the label gives where there is none
  std::string library;    ///< as parameter sets name it: "tensorrt-llm"
  std::string source;     ///< as printed
  std::string op, variant;
  std::string label;   ///< the shape in its columns' words: "m=4096 n=4096 k=4096"
  std::string regime;  ///< what else sets rows apart in an error table: "8 - 32 MiB"; may be empty
  KernelShape shape;
  Seconds measured;
  /// Rows of one family are shapes of one model's matrix or layer at several batches; a fit sees
  /// whole families or nothing of them.
  std::uint64_t family = 0;
  /// Whether a fit may use it: not where the call falls off its fast path or waits for the host.
  bool fitted = true;
};

struct SkippedKernelRow {
  std::int64_t line = 0;
  std::string reason;
};

struct KernelTable {
  std::string kind;  ///< "gemm", "attention", ...
  std::vector<KernelRow> rows;
  std::vector<SkippedKernelRow> skipped;
};

/// "trtllm 1.3.0rc20 (torch_flow)" is tensorrt-llm. A label of no known kind: in lower case with
/// dashes, without its version.
std::string library_named(std::string_view label);

/// FNV-1a of a text: the same on every machine.
std::uint64_t hash_of(std::string_view text);

}  // namespace orrery

// Fitted parameters of kernel models: one set for an operator, its variant, a library and a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/gpu.h"
#include "core/json.h"

namespace orrery {

/// Of |predicted / measured - 1| over some rows of a table.
struct FitErrors {
  std::int64_t n = 0;
  double median = 0, p90 = 0;
};

struct KernelSet {
  std::string op;       ///< "gemm", "attention-decode", ...
  std::string variant;  ///< what else divides its kernels: "bf16", "fp8_block"
  std::string library;  ///< whose kernels: "tensorrt-llm"
  std::string gpu;      ///< catalog name: on which they were timed
  GpuArchitecture architecture = GpuArchitecture::hopper;  ///< of that GPU
  bool preferred = false;  ///< stands for the operator where no library is named
  std::map<std::string, Json, std::less<>> values;  ///< by the parameter's name
  FitErrors seen, unseen;  ///< of the shape families that the fit saw and of the others; n 0: none
  std::string note;        ///< where the values are from if not from a fit
  std::string place;       ///< file, for messages
};

/// The closest set to what was asked, and how close.
struct FoundSet {
  const KernelSet* set = nullptr;
  bool own_gpu = false, own_library = false;
};

class KernelSets {
 public:
  /// Every JSON file of data_dir/parameters and its folders; docs/formats.md has the layout.
  /// InputError at the file for anything missing or misspelled.
  static KernelSets load(const std::string& data_dir);

  /// Replaces a set of the same op, variant, library and GPU.
  void add(KernelSet set);

  /// Never of another variant. A set of the same architecture goes before one of the same library,
  /// that before one of the same GPU, that before a preferred one. Empty where no set has the op
  /// and variant.
  FoundSet find(std::string_view op, std::string_view variant, std::string_view library,
                const Gpu& gpu) const;
  const std::vector<KernelSet>& all() const { return sets_; }

 private:
  std::vector<KernelSet> sets_;
};

std::vector<KernelSet> kernel_sets_from_json(const Json& json, const std::string& place);
/// The file of one operator, library and GPU; EXPECTs sets that agree on these.
Json to_json(const std::vector<KernelSet>& sets);
/// "gemm/tensorrt-llm-h100-sxm.json", under data/parameters.
std::string file_of(const KernelSet& set);

}  // namespace orrery

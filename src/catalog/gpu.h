// A GPU as its maker and its owners describe it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/fact.h"
#include "units/quantity.h"
#include "units/text.h"

namespace orrery {

enum class Precision { fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4 };
inline constexpr std::array all_precisions = {Precision::fp64, Precision::fp32, Precision::tf32,
                                              Precision::fp16, Precision::bf16, Precision::fp8,
                                              Precision::int8, Precision::fp4};

std::string_view to_text(Precision precision);
/// InputError with the valid names.
Precision precision_of(std::string_view name, const std::string& place = "");
/// As it lies in memory: tf32 takes four bytes, fp4 half of one.
Bytes element_size(Precision precision);

enum class GpuArchitecture { volta, ampere, ada, hopper, blackwell };

std::string_view to_text(GpuArchitecture architecture);

/// What the work of a kind of chip costs in energy, and how that falls with the clock: see
/// physics/power.h.
struct PowerSet {
  std::string name;
  Fact<Hertz> reference;  ///< the clock at which the energies of arithmetic hold
  Fact<double> voltage_floor, exponent;
  Fact<double> zeros;   ///< energy of arithmetic on operands of all zeros over that on random ones
  Fact<double> fabric;  ///< share of the boost clock below which memory slows with the clock
  std::array<Fact<JoulesPerFlop>, all_precisions.size()> energy;  ///< fp32: of vector units
  Fact<JoulesPerByte> memory;
};

/// InputError at `place` for anything missing, misspelled or impossible.
PowerSet power_set_from_json(const Json& json, const std::string& place);

struct Gpu {
  std::string name;
  std::string title;
  GpuArchitecture architecture = GpuArchitecture::hopper;
  std::string node;  ///< the node that it usually sits in

  Fact<std::int64_t> sms;

  struct Clock {
    Fact<Hertz> boost;  ///< the highest that the driver grants
    Fact<Hertz> base;
    Fact<Hertz> rate;  ///< at which the published matrix peak is exact
    Fact<Hertz> idle;
  } clock;

  /// Dense, a multiply and an add counted as two; no value where there is no such unit.
  std::array<std::optional<Fact<FlopPerSecond>>, all_precisions.size()> peaks;
  Fact<double> sparsity;  ///< factor on the matrix peaks with 2:4 sparsity

  struct Memory {
    std::string kind;     ///< "HBM3"
    Fact<Bytes> nominal;  ///< as printed on the box
    Fact<Bytes> usable;   ///< as the driver lists it
    Fact<BytesPerSecond> bandwidth;
  } memory;

  Fact<Bytes> l2;
  Fact<Bytes> shared_memory;  ///< per SM
  Fact<Bytes> registers;      ///< per SM

  struct NvLink {
    std::string kind;  ///< "NVLink 4"
    Fact<std::int64_t> links;
    Fact<BytesPerSecond> bandwidth;  ///< all links, per direction
  };
  std::optional<NvLink> nvlink;

  struct Pcie {
    std::string kind;                ///< "PCIe 5 x16"
    Fact<BytesPerSecond> bandwidth;  ///< per direction
  } pcie;

  struct Power {
    Fact<Watts> limit;            ///< as shipped (TDP)
    Fact<Watts> lowest, highest;  ///< limits that may be set
    Fact<Watts> idle;
    Fact<Watts> context;  ///< what an idle context adds
    /// What kernels draw beside their work, at any clock. Where it is not stated: idle, and the
    /// context's in proportion to the clock.
    Fact<Watts> active;
    std::string set_name;  ///< the catalog's power set: "hopper-power"
    PowerSet set;          ///< read by the catalog
  } power;

  struct Price {
    std::string as_of;
    Fact<DollarsPerSecond> on_demand, low, high;
  } price;

  bool supports(Precision precision) const;
  std::optional<FlopPerSecond> peak(Precision precision) const;
  /// InputError that names the precisions it has.
  FlopPerSecond required_peak(Precision precision) const;
  /// Of one SM in one clock, from the published peak.
  std::optional<Flop> flop_per_clock(Precision precision) const;
};

/// InputError at `place` for anything missing, misspelled or impossible.
Gpu gpu_from_json(const Json& json, const std::string& place);

}  // namespace orrery

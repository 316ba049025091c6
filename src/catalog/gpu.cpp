#include "catalog/gpu.h"

#include <vector>

#include "catalog/sources.h"
#include "core/error.h"
#include "core/text.h"

namespace orrery {
namespace {

std::size_t index_of(Precision precision) { return static_cast<std::size_t>(precision); }

template <class Q>
Fact<Q> positive(Fields& fields, std::string_view key) {
  Fact<Q> fact = fields.required<Fact<Q>>(key);
  if (fact.known() && !(fact.value() > Q{})) fields.fail(key, "must be more than zero");
  return fact;
}

Fact<double> share(Fields& fields, std::string_view key) {
  Fact<double> fact = positive<double>(fields, key);
  if (fact.known() && fact.value() > 1) fields.fail(key, "must be at most 1");
  return fact;
}

Gpu::Clock read_clock(Fields fields) {
  Gpu::Clock clock;
  clock.boost = positive<Hertz>(fields, "boost");
  clock.base = positive<Hertz>(fields, "base");
  clock.rate = positive<Hertz>(fields, "rate");
  clock.idle = positive<Hertz>(fields, "idle");
  fields.finish();
  return clock;
}

Gpu::Memory read_memory(Fields fields) {
  Gpu::Memory memory;
  memory.kind = fields.required<std::string>("kind");
  memory.nominal = positive<Bytes>(fields, "nominal");
  memory.usable = positive<Bytes>(fields, "usable");
  memory.bandwidth = positive<BytesPerSecond>(fields, "bandwidth");
  fields.finish();
  return memory;
}

Gpu::NvLink read_nvlink(Fields fields) {
  Gpu::NvLink nvlink;
  nvlink.kind = fields.required<std::string>("kind");
  nvlink.links = positive<std::int64_t>(fields, "links");
  nvlink.bandwidth = positive<BytesPerSecond>(fields, "bandwidth");
  fields.finish();
  return nvlink;
}

Gpu::Pcie read_pcie(Fields fields) {
  Gpu::Pcie pcie;
  pcie.kind = fields.required<std::string>("kind");
  pcie.bandwidth = positive<BytesPerSecond>(fields, "bandwidth");
  fields.finish();
  return pcie;
}

Gpu::Power read_power(Fields fields) {
  Gpu::Power power;
  power.limit = positive<Watts>(fields, "limit");
  power.lowest = positive<Watts>(fields, "lowest");
  power.highest = positive<Watts>(fields, "highest");
  power.idle = positive<Watts>(fields, "idle");
  power.context = positive<Watts>(fields, "context");
  if (fields.has("active")) power.active = positive<Watts>(fields, "active");
  power.set_name = fields.required<std::string>("set");
  fields.finish();
  return power;
}

Gpu::Price read_price(Fields fields) {
  Gpu::Price price;
  price.as_of = fields.optional<std::string>("as_of", "");
  price.on_demand = positive<DollarsPerSecond>(fields, "on_demand");
  price.low = positive<DollarsPerSecond>(fields, "low");
  price.high = positive<DollarsPerSecond>(fields, "high");
  fields.finish();
  return price;
}

void read_peaks(Fields fields, Gpu& gpu) {
  for (const Precision precision : all_precisions) {
    if (fields.has(to_text(precision))) {
      gpu.peaks[index_of(precision)] = positive<FlopPerSecond>(fields, to_text(precision));
    }
  }
  fields.finish();
}

}  // namespace

std::string_view to_text(Precision precision) {
  switch (precision) {
    case Precision::fp64:
      return "fp64";
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::fp8:
      return "fp8";
    case Precision::int8:
      return "int8";
    case Precision::fp4:
      return "fp4";
  }
  return "";
}

Precision precision_of(std::string_view name, const std::string& place) {
  std::vector<std::string> names;
  for (const Precision precision : all_precisions) {
    if (to_text(precision) == name) return precision;
    names.emplace_back(to_text(precision));
  }
  throw InputError("no precision " + in_quotes(name), "there are " + join(names),
                   did_you_mean(name, names), place);
}

Bytes element_size(Precision precision) {
  switch (precision) {
    case Precision::fp64:
      return Bytes(8);
    case Precision::fp32:
    case Precision::tf32:
      return Bytes(4);
    case Precision::fp16:
    case Precision::bf16:
      return Bytes(2);
    case Precision::fp8:
    case Precision::int8:
      return Bytes(1);
    case Precision::fp4:
      return Bytes(0.5);
  }
  return Bytes(0);
}

std::string_view to_text(GpuArchitecture architecture) {
  switch (architecture) {
    case GpuArchitecture::volta:
      return "volta";
    case GpuArchitecture::ampere:
      return "ampere";
    case GpuArchitecture::ada:
      return "ada";
    case GpuArchitecture::hopper:
      return "hopper";
    case GpuArchitecture::blackwell:
      return "blackwell";
  }
  return "";
}

bool Gpu::supports(Precision precision) const { return peaks[index_of(precision)].has_value(); }

std::optional<FlopPerSecond> Gpu::peak(Precision precision) const {
  const auto& fact = peaks[index_of(precision)];
  return fact ? std::optional(fact->value()) : std::nullopt;
}

FlopPerSecond Gpu::required_peak(Precision precision) const {
  if (const auto rate = peak(precision)) return *rate;
  std::vector<std::string> names;
  for (const Precision other : all_precisions) {
    if (supports(other)) names.emplace_back(to_text(other));
  }
  throw InputError(name + " has no " + std::string(to_text(precision)) + " units",
                   "it has " + join(names));
}

std::optional<Flop> Gpu::flop_per_clock(Precision precision) const {
  const auto rate = peak(precision);
  if (!rate) return std::nullopt;
  return *rate / clock.rate.value() / static_cast<double>(sms.value());
}

PowerSet power_set_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  PowerSet set;
  set.name = fields.required<std::string>("name");
  set.reference = positive<Hertz>(fields, "reference");
  set.voltage_floor = share(fields, "voltage_floor");
  set.exponent = positive<double>(fields, "exponent");
  set.zeros = share(fields, "zeros");
  set.fabric = share(fields, "fabric");
  Fields energy = fields.nested("energy");
  for (const Precision precision : all_precisions) {
    if (!energy.has(to_text(precision))) continue;
    set.energy[index_of(precision)] = positive<JoulesPerFlop>(energy, to_text(precision));
  }
  energy.finish();
  set.memory = positive<JoulesPerByte>(fields, "memory");
  check_sources(fields);
  for (const auto* key : {"title", "aliases"}) fields.ignore(key);
  fields.finish();
  return set;
}

Gpu gpu_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  Gpu gpu;
  gpu.name = fields.required<std::string>("name");
  gpu.title = fields.required<std::string>("title");
  fields.optional<std::vector<std::string>>("aliases");
  gpu.architecture =
      fields.choice<GpuArchitecture>("architecture", {{"volta", GpuArchitecture::volta},
                                                      {"ampere", GpuArchitecture::ampere},
                                                      {"ada", GpuArchitecture::ada},
                                                      {"hopper", GpuArchitecture::hopper},
                                                      {"blackwell", GpuArchitecture::blackwell}});
  fields.required<std::string>("compute_capability");
  fields.required<std::string>("launch");
  gpu.node = fields.required<std::string>("node");
  gpu.sms = positive<std::int64_t>(fields, "sms");
  gpu.clock = read_clock(fields.nested("clock"));
  read_peaks(fields.nested("peak"), gpu);
  gpu.sparsity = positive<double>(fields, "sparsity");
  gpu.memory = read_memory(fields.nested("memory"));
  gpu.l2 = positive<Bytes>(fields, "l2");
  gpu.shared_memory = positive<Bytes>(fields, "shared_memory");
  gpu.registers = positive<Bytes>(fields, "registers");
  if (auto nvlink = fields.optional_nested("nvlink")) gpu.nvlink = read_nvlink(*nvlink);
  gpu.pcie = read_pcie(fields.nested("pcie"));
  gpu.power = read_power(fields.nested("power"));
  gpu.price = read_price(fields.nested("price"));
  check_sources(fields);
  fields.finish();
  return gpu;
}

}  // namespace orrery

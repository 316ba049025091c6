#include "catalog/kernel_rates.h"

#include "core/fields.h"
#include "units/text.h"

namespace orrery {
namespace {

MatrixRates matrix_rates(Fields fields) {
  MatrixRates rates;
  rates.sustained = fields.required<Fact<double>>("sustained");
  rates.feed = fields.required<Fact<BytesPerSecond>>("feed");
  rates.epilogue = fields.required<Fact<BytesPerSecond>>("epilogue");
  rates.overlap = fields.required<Fact<double>>("overlap");
  rates.quantisation = fields.required<Fact<double>>("quantisation");
  rates.misaligned = fields.required<Fact<double>>("misaligned");
  fields.finish();
  return rates;
}

AttentionRates attention_rates(Fields fields) {
  AttentionRates rates;
  rates.sustained = fields.required<Fact<double>>("sustained");
  rates.half_length = fields.required<Fact<double>>("half_length");
  rates.backward = fields.required<Fact<double>>("backward");
  rates.head_dim_exponent = fields.required<Fact<double>>("head_dim_exponent");
  fields.finish();
  return rates;
}

}  // namespace

KernelRates kernel_rates_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  KernelRates rates;
  rates.name = fields.required<std::string>("name");
  rates.architecture =
      fields.choice<GpuArchitecture>("architecture", {{"volta", GpuArchitecture::volta},
                                                      {"ampere", GpuArchitecture::ampere},
                                                      {"ada", GpuArchitecture::ada},
                                                      {"hopper", GpuArchitecture::hopper},
                                                      {"blackwell", GpuArchitecture::blackwell}});
  Fields matrices = fields.nested("matrices");
  rates.sixteen_bit = matrix_rates(matrices.nested("16-bit"));
  // Only where the architecture has 8-bit matrix units.
  if (auto eight = matrices.optional_nested("8-bit")) rates.eight_bit = matrix_rates(*eight);
  matrices.finish();
  Fields attention = fields.nested("attention");
  rates.flash = attention_rates(attention.nested("flash"));
  rates.early_flash = attention_rates(attention.nested("early_flash"));
  rates.unfused = attention.required<Fact<double>>("unfused");
  rates.unfused_misaligned = attention.required<Fact<double>>("unfused_misaligned");
  attention.finish();
  rates.stream = fields.required<Fact<double>>("stream");
  rates.start = fields.required<Fact<Seconds>>("start");
  for (const auto* key : {"title", "sources", "aliases", "kind", "fit"}) fields.ignore(key);
  fields.finish();
  return rates;
}

}  // namespace orrery

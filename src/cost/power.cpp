#include "cost/power.h"

#include <algorithm>

#include "core/error.h"

namespace orrery {
namespace {

constexpr JoulesPerFlop pj_per_flop(double value) { return JoulesPerFlop(value * 1e-12); }
constexpr JoulesPerByte pj_per_byte(double value) { return JoulesPerByte(value * 1e-12); }

struct Energies {
  JoulesPerFlop sixteen_bit, eight_bit, vector;
  JoulesPerByte memory;
  double full_clock = 1;
};

// te42kyfo/gpu-benches@ded6f57, power beside a roofline sweep: H200 105 W + 122 pJ/byte + 5.8
// pJ/flop fp32 (least squares, 3.9 W rms), A100 66 W + 118 + 5.2 (6.4 W rms). Measured.
// Matrix work, derived from plateaus at the limit after the floor and the operands' 35 W (8192
// cubed): (700 - 122 - 35) W at 794 TFLOP/s in bf16 and at 1403 TFLOP/s in fp8 (matmul plateaus of
// stas00/ml-engineering@744d01e). At 1980 MHz instead of the 1620 MHz of that plateau 1.6 times as
// much: the voltage that meets the plateaus of H100, H200 (also on zeros) and GH200 within 1.5 %.
constexpr Energies hopper = {pj_per_flop(0.69), pj_per_flop(0.39), pj_per_flop(5.8),
                             pj_per_byte(120), 1.6};
// A100's bf16 plateau loses 7 % from 400 W to 300 W (271 to 253 TFLOP/s): between 0.73 pJ/flop
// (253 at 300 W) and 1.05 (271 at 400 W). Derived; int8 at half: assumed.
constexpr Energies ampere = {pj_per_flop(1.0), pj_per_flop(0.5), pj_per_flop(5.2),
                             pj_per_byte(118)};
// L40 at its cap of 354 W: 50.9 TFLOP/s fp32 with 0.4 TB/s; 199 W at 0.845 TB/s (gpu-benches).
// L40S at 350 W: bf16 206 to 270, fp8 320 to 426 TFLOP/s (aiconfigurator@095f58a). Derived.
constexpr Energies ada = {pj_per_flop(0.94), pj_per_flop(0.60), pj_per_flop(4.0), pj_per_byte(115)};
// No power of a V100 kernel with its FLOP/s was found. Assumed: its limit of 300 W is reached at
// 0.8 of the fp16 and of the fp32 peak; memory as on A100.
constexpr Energies volta = {pj_per_flop(2.2), pj_per_flop(2.2), pj_per_flop(18), pj_per_byte(118)};
// No power of a B200 kernel was found. Assumed: its limit of 1000 W is reached at 0.78 of the bf16
// peak and 0.71 of the fp8 peak, as on H100; memory as on H200.
constexpr Energies blackwell = {pj_per_flop(0.45), pj_per_flop(0.25), pj_per_flop(5.8),
                                pj_per_byte(120), 1.6};

const Energies& energies_of(GpuArchitecture architecture) {
  switch (architecture) {
    case GpuArchitecture::volta:
      return volta;
    case GpuArchitecture::ampere:
      return ampere;
    case GpuArchitecture::ada:
      return ada;
    case GpuArchitecture::hopper:
      return hopper;
    case GpuArchitecture::blackwell:
      return blackwell;
  }
  return hopper;
}

// Of the limit, where idle power or what a context adds is unknown: 0.17 on H100, 0.20 on A100,
// 0.29 on L40S (arXiv 2604.04745).
constexpr double usual_floor = 0.2;

}  // namespace

JoulesPerFlop PowerModel::matrix(Precision precision) const {
  switch (precision) {
    case Precision::fp16:
    case Precision::bf16:
      return sixteen_bit;
    case Precision::fp8:
    case Precision::int8:
      return eight_bit;
    case Precision::fp4:
      return eight_bit * 0.5;  // assumed: half the bits
    case Precision::tf32:
      return sixteen_bit * 2;  // assumed: half the rate at the same power
    case Precision::fp32:
      return vector;
    case Precision::fp64:
      return sixteen_bit * 15;  // HPL draws 696 W on an H100 at 55 to 60 TFLOP/s
  }
  return sixteen_bit;
}

PowerModel power_model_of(const Gpu& gpu) {
  const Energies& energies = energies_of(gpu.architecture);
  const bool known = gpu.power.idle.known() && gpu.power.context.known();
  const Watts floor = known ? gpu.power.idle.value() + gpu.power.context.value()
                            : gpu.power.limit.value() * usual_floor;
  // Rates of Hopper were fitted to 700 W parts, those of the others to parts under their own limit.
  const Watts rated =
      gpu.architecture == GpuArchitecture::hopper ? Watts(700) : gpu.power.limit.value();
  PowerModel model = {floor,
                      energies.sixteen_bit,
                      energies.eight_bit,
                      energies.vector,
                      energies.memory,
                      energies.full_clock,
                      rated};
  return model;
}

Joules energy(const PowerModel& model, const GpuWork& work) {
  return work.matrix * model.matrix(work.precision) + work.vector * model.vector +
         work.memory * model.memory;
}

Joules energy_under(Watts limit, const PowerModel& model, const GpuWork& work, Seconds duration) {
  const Joules full_clock =
      energy(model, work) + work.matrix * model.matrix(work.precision) * (model.full_clock - 1);
  return std::min(full_clock, std::max(limit - model.floor, Watts()) * duration);
}

Watts average_power(const PowerModel& model, const GpuWork& work, Seconds step, Watts limit) {
  EXPECT(step > Seconds());
  return std::min(model.floor + energy(model, work) / step, limit);
}

Watts host_power_per_gpu(const Cluster& cluster) {
  return cluster.node.host_power.value() / static_cast<double>(cluster.gpus_per_node);
}

Watts at_the_meter(Watts gpu, Watts host, double pue) {
  EXPECT(pue >= 1);
  return (gpu + host) * pue;
}

}  // namespace orrery

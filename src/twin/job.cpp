#include "twin/job.h"

namespace orrery {

std::string_view name_of(Task task) {
  switch (task) {
    case Task::pretrain:
      return "pretrain";
    case Task::sft:
      return "sft";
    case Task::lora:
      return "lora";
    case Task::qlora:
      return "qlora";
  }
  return "";
}

std::string_view name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return "adam";
    case Optimizer::adam_bf16:
      return "adam-bf16";
    case Optimizer::adam8bit:
      return "adam8bit";
    case Optimizer::adafactor:
      return "adafactor";
    case Optimizer::muon:
      return "muon";
    case Optimizer::sgd:
      return "sgd";
  }
  return "";
}

std::string_view name_of(Fp8Copies copies) {
  switch (copies) {
    case Fp8Copies::none:
      return "none";
    case Fp8Copies::weights:
      return "weights";
    case Fp8Copies::transposed:
      return "transposed";
  }
  return "";
}

double moment_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return 8;
    case Optimizer::adam_bf16:
      return 4;
    case Optimizer::adam8bit:
      return 2 + 2 * 4.0 / 256;
    case Optimizer::adafactor:
      return 0;
    case Optimizer::muon:
    case Optimizer::sgd:
      return 4;
  }
  return 0;
}

}  // namespace orrery

#include "catalog/families.h"

#include <algorithm>
#include <array>

namespace orrery {
namespace {

constexpr Norm ln = Norm::layer_norm;
constexpr Norm rms = Norm::rms_norm;
constexpr Positions learned = Positions::learned;
constexpr Positions rotary = Positions::rotary;
constexpr Positions alibi = Positions::alibi;
constexpr bool yes = true;
constexpr bool no = false;

// Source of each row: the configuration_*.py and modeling_*.py of huggingface/transformers v4.5x
// for that model_type. megatron_gpt is the GPT of NVIDIA/Megatron-LM with its classic options.
constexpr std::array table = {
    // name, activation, gated, norm, positions, tied,
    //   bias of qkv, output, mlp, norm, head, max positions, kv heads, head dim, 4 x hidden
    Family{"bloom", "gelu", no, ln, alibi, yes, yes, yes, yes, yes, no, 2048, 0, 0, yes},
    Family{"falcon", "gelu", no, ln, rotary, yes, no, no, no, yes, no, 2048, 0, 0, yes},
    Family{"gemma", "gelu_pytorch_tanh", yes, rms, rotary, yes, no, no, no, no, no, 8192, 16, 256,
           no},
    Family{"gpt2", "gelu_new", no, ln, learned, yes, yes, yes, yes, yes, no, 1024, 0, 0, yes},
    Family{"gpt_neox", "gelu", no, ln, rotary, no, yes, yes, yes, yes, no, 2048, 0, 0, no},
    Family{"llama", "silu", yes, rms, rotary, no, no, no, no, no, no, 2048, 0, 0, no},
    Family{"megatron_gpt", "gelu", no, ln, learned, yes, yes, yes, yes, yes, no, 2048, 0, 0, yes},
    Family{"mistral", "silu", yes, rms, rotary, no, no, no, no, no, no, 131072, 8, 0, no},
    Family{"mpt", "gelu", no, ln, alibi, yes, no, no, no, no, no, 2048, 0, 0, yes},
    Family{"nemotron", "relu2", no, ln, rotary, no, no, no, no, yes, no, 4096, 0, 0, no},
    Family{"opt", "relu", no, ln, learned, yes, yes, yes, yes, yes, no, 2048, 0, 0, no},
    Family{"phi", "gelu_new", no, ln, rotary, no, yes, yes, yes, yes, yes, 2048, 0, 0, yes},
    Family{"phi3", "silu", yes, rms, rotary, no, no, no, no, no, no, 4096, 0, 0, no},
    Family{"qwen2", "silu", yes, rms, rotary, no, yes, no, no, no, no, 32768, 32, 0, no},
    Family{"qwen3", "silu", yes, rms, rotary, no, no, no, no, no, no, 32768, 32, 128, no},
};

}  // namespace

std::span<const Family> families() { return table; }

const Family* find_family(std::string_view name) {
  if (name == "phi-msft") name = "phi";  // its name before it joined the library
  const auto found = std::ranges::find(table, name, &Family::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace orrery

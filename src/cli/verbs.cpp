#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/command.h"

#ifndef ORRERY_VERSION
#define ORRERY_VERSION "0"
#endif

namespace orrery::cli {
namespace {

constexpr std::array validate_switches = {
    Switch{"write-evidence", "write the error table into the data folder's evidence"}};

constexpr std::string_view plan_details =
    "Of tp, pp, vpp, dp, micro-batch, zero, recompute and sequence-parallel, and of cp from 32768\n"
    "tokens a sequence on, and of ep with experts, whatever is left out is searched; the defaults "
    "below are predict's.\n"
    "--gpus is needed.\n"
    "\n"
    "The table has the fastest plans that fit, fastest first. GiB is the memory of the fullest "
    "GPU;\n"
    "! says that little of the card is left. \"why not first\" names the part of the step that "
    "grew\n"
    "most over the first plan's, from its seconds to theirs. Plans that differ in vpp, zero or\n"
    "recompute only are listed once. The first plan follows in full.\n";

constexpr std::string_view catalog_details =
    "KIND is gpus, nodes, fabrics, models, frameworks, rules or kernels and lists one kind; NAME "
    "prints "
    "an\n"
    "entry: every fact with how it is known and its source.\n";

constexpr std::array<std::string_view, 1> model_keys = {"seq-len"};

constexpr std::string_view model_details =
    "NAME is a model of the catalog (orrery catalog models), PATH the Hugging Face config.json of "
    "any\n"
    "other. Every key that a configuration leaves out is listed with what its family's code "
    "takes.\n";

constexpr std::array fit_switches = {
    Switch{"write", "write the sets into the data folder's parameters"}};
constexpr std::array fit_options = {
    Option{"op", "NAME", "of one operator only: gemm, ..."},
    Option{"variant", "NAME", "of one variant only: bf16, fp8_block, ..."},
    Option{"library", "NAME", "of one library only: tensorrt-llm, vllm, ..."},
    Option{"timed-on", "GPU", "of one GPU only"},
    Option{"rows", "N", "rows shown to each fit, at most (900)"},
    Option{"rounds", "N", "of a training table: over all parameters of data/fits/jobs.json (1)"},
    Option{"evaluations", "N", "of a model over its rows, for each start (4000)"},
    Option{"out", "FILE", "write what --json prints to a file"},
};

constexpr std::string_view fit_details =
    "TABLE.csv is a table of kernel timings with the columns of data/measurements: one set of\n"
    "parameters is fitted for each operator, variant, library and GPU. Half of the shape families\n"
    "are shown to the fit; the errors of the others are printed beside.\n";

constexpr std::array kernel_options = {
    Option{"gpu", "NAME", "catalog name; needed"},
    Option{"library", "NAME", "whose kernels (the preferred ones)"},
    Option{"power-cap", "W", "power limit: 500 or 500W (the card's)"},
    Option{"precision", "NAME", "of the operands: bf16, fp8, fp8_block, ... (bf16)"},
    Option{"replayed", "BOOL", "on the same operands again and again: small ones stay in L2"},
    Option{"m", "N", "gemm: rows of the first matrix and of the result"},
    Option{"n", "N", "gemm: columns of the second matrix and of the result"},
    Option{"k", "N", "gemm: what is summed over"},
    Option{"batch", "N", "gemm: products at once; attention and mla: sequences (1)"},
    Option{"sparse", "BOOL", "gemm: two of four weights kept (assumed, not measured)"},
    Option{"heads", "N", "attention, mla: query heads"},
    Option{"kv-heads", "N", "attention: heads of keys and values (as many)"},
    Option{"head-dim", "N", "attention: width of a head (128)"},
    Option{"q-len", "N", "attention, mla: new tokens of a sequence (1 in decoding)"},
    Option{"kv-len", "N", "attention, mla: keys, the new tokens included (q-len)"},
    Option{"window", "N", "attention: keys that a token sees at most (all)"},
    Option{"causal", "BOOL", "attention: a token sees none after it (true)"},
    Option{"phase", "NAME", "prefill, decode or backward (by q-len)"},
    Option{"kv-precision", "NAME", "attention, mla: of the cache: bf16 or fp8 (precision)"},
    Option{"rows", "N", "memory-bound: rows of the result, such as tokens"},
    Option{"cols", "N", "memory-bound: elements of a row, such as the hidden size"},
    Option{"bytes", "SIZE", "collectives: the whole vector, as nccl-tests: 1GiB"},
    Option{"gpus", "N", "collectives: ranks"},
    Option{"gpus-per-node", "N", "collectives: of them in a node (all that it holds)"},
    Option{"node", "NAME", "collectives: the server (the GPU's usual one)"},
    Option{"fabric", "NAME", "collectives: between nodes (the server's usual one)"},
    Option{"sweep", "FLAG=A..B[:STEP]", "a CSV line for each value, doubling or by STEP"},
    Option{"out", "FILE", "write what would be printed to a file"},
};

constexpr std::string_view kernel_details =
    "OP is gemm, attention, mla, a collective (all_reduce, all_gather, reduce_scatter, "
    "all_to_all,\n"
    "broadcast, send_recv) or a memory-bound kernel (rmsnorm, softmax, silu_and_mul, rope,\n"
    "residual_add, quantise_fp8, adamw, ...: docs/kernels.md). Sizes are 1 to 2147483648.\n"
    "\n"
    "The answer names the parameters that it rests on and how far off they were. Where nobody\n"
    "timed this GPU, library or precision, the nearest are taken and the answer says so.\n";

constexpr std::array all_verbs = {
    Verb{.name = "plan",
         .group = "ask",
         .summary = "the fastest ways to divide a job over GPUs",
         .usage = "orrery plan [SCENARIO] [flags]",
         .example = "orrery plan --model llama-3.1-70b --gpu h100-sxm --gpus 64",
         .details = plan_details,
         .asks = true,
         .arguments = false,
         .keys = {},
         .switches = {},
         .run = plan_verb},
    Verb{.name = "predict",
         .group = "ask",
         .summary = "time, memory, power and cost of one training step",
         .usage = "orrery predict [SCENARIO] [flags]",
         .example =
             "orrery predict --model llama-3.1-8b --gpu h100-sxm --gpus 8 --tp 2 --tokens 100B",
         .details = "",
         .asks = true,
         .arguments = false,
         .keys = {},
         .switches = {},
         .run = predict_verb},
    Verb{.name = "kernel",
         .group = "ask",
         .summary = "time, power and roofline of one operator on one GPU",
         .usage = "orrery kernel OP --gpu NAME [flags]",
         .example = "orrery kernel gemm --gpu h100-sxm --m 4096 --n 4096 --k 4096",
         .details = kernel_details,
         .asks = false,
         .arguments = true,
         .keys = {},
         .switches = {},
         .options = kernel_options,
         .run = kernel_verb},
    Verb{.name = "catalog",
         .group = "evidence",
         .summary = "what is known of GPUs, servers, networks and models, and from where",
         .usage = "orrery catalog [KIND|NAME]",
         .example = "orrery catalog h100-sxm",
         .details = catalog_details,
         .asks = false,
         .arguments = true,
         .keys = {},
         .switches = {},
         .run = catalog_verb},
    Verb{.name = "model",
         .group = "evidence",
         .summary = "the shape of a model, its parameters, FLOPs and memory",
         .usage = "orrery model NAME|PATH [--seq-len N]",
         .example = "orrery model deepseek-v3",
         .details = model_details,
         .asks = false,
         .arguments = true,
         .keys = model_keys,
         .switches = {},
         .run = model_verb},
    Verb{.name = "validate",
         .group = "evidence",
         .summary = "predictions against published measurements",
         .usage = "orrery validate [FILE.csv]",
         .example = "orrery validate data/measurements/training.csv",
         .details = "",
         .asks = false,
         .arguments = true,
         .keys = {},
         .switches = validate_switches,
         .run = validate_verb},
    Verb{.name = "fit",
         .group = "evidence",
         .summary = "parameters of kernel models from tables of timings",
         .usage = "orrery fit TABLE.csv [flags]",
         .example = "orrery fit data/measurements/gemm.csv --library vllm --timed-on h100-sxm",
         .details = fit_details,
         .asks = false,
         .arguments = true,
         .keys = {},
         .switches = fit_switches,
         .options = fit_options,
         .run = fit_verb},
    Verb{.name = "version",
         .group = "evidence",
         .summary = "the version of this program",
         .usage = "orrery version",
         .example = "orrery version",
         .details = "",
         .asks = false,
         .arguments = false,
         .keys = {},
         .switches = {},
         .run = version_verb},
};

void add_line(std::string& text, const std::string& left, std::string_view right) {
  text += fmt::format("  {:<28} {}\n", left, right);
}

void add_key(std::string& text, const RequestKey& key) {
  const std::string left = fmt::format("--{} {}", key.name, key.values);
  if (left.size() <= 28) return add_line(text, left, key.help);
  text += "  " + left + "\n";
  add_line(text, "", key.help);
}

}  // namespace

std::span<const Verb> verbs() { return all_verbs; }

bool takes(const Verb& verb, std::string_view key) {
  return verb.asks || std::ranges::find(verb.keys, key) != verb.keys.end();
}

std::string version_text() { return "orrery " ORRERY_VERSION "\n"; }

std::string help_text() {
  std::string text =
      "orrery: a model of GPU clusters for generative AI\n\n"
      "  orrery VERB [SCENARIO] [flags]\n";
  std::string_view group;
  for (const Verb& verb : verbs()) {
    if (verb.group != group) text += fmt::format("\n{}\n", group = verb.group);
    text += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  }
  return text +
         "\nExit codes: 0 an answer, 1 infeasible, 2 bad input, 3 failure while running.\n"
         "orrery VERB --help lists the verb's flags and an example.\n";
}

std::string help_text(const Verb& verb) {
  std::string text = fmt::format("{}: {}\n\n  {}\n", verb.name, verb.summary, verb.usage);
  if (!verb.details.empty()) text += fmt::format("\n{}", verb.details);
  if (verb.asks) {
    text +=
        "\nSCENARIO is a YAML or JSON file whose keys are the flags below; flags win over it.\n";
  }
  std::string_view group;
  for (const RequestKey& key : request_keys()) {
    if (!takes(verb, key.name)) continue;
    if (key.group != group) text += fmt::format("\n{}\n", group = key.group);
    add_key(text, key);
  }
  if (!verb.options.empty()) text += "\nflags\n";
  for (const Option& own : verb.options) {
    add_line(text, fmt::format("--{} {}", own.name, own.values), own.help);
  }
  text += "\noutput\n";
  for (const Switch& own : verb.switches) add_line(text, "--" + std::string(own.name), own.help);
  add_line(text, "--json", "the same as JSON, with the keys of docs/formats.md");
  add_line(text, "--explain", "why: every part of the answer and every assumption");
  add_line(text, "--help", "this text");
  return text + fmt::format("\nexample\n  {}\n", verb.example);
}

}  // namespace orrery::cli

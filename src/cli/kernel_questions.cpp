#include "cli/kernel_questions.h"

#include <algorithm>

#include "cli/kernel_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "cost/collective.h"
#include "physics/traffic.h"

namespace orrery::cli {
namespace {

void check_unit(const Machine& machine, Precision precision) {
  if (machine.gpu.flop_per_clock(precision)) return;
  throw InputError(machine.gpu.name + " has no " + std::string(to_text(precision)) + " units", "",
                   "see orrery catalog " + machine.gpu.name, "--precision");
}

// --- matrix products ----------------------------------------------------------------------------

// A format that nobody timed is priced as the one most like it, at its own units' rate.
std::vector<std::string> variants_of(GemmFormat format) {
  switch (format) {
    case GemmFormat::fp32:
      return {"fp32", "bf16", "fp16"};
    case GemmFormat::tf32:
      return {"tf32", "bf16", "fp16"};
    case GemmFormat::fp16:
      return {"fp16", "bf16"};
    case GemmFormat::fp8:
      return {"fp8", "fp8_block", "bf16"};
    case GemmFormat::fp8_block:
      return {"fp8_block", "fp8", "bf16"};
    case GemmFormat::int8:
      return {"int8", "int8_smoothquant", "fp8", "bf16"};
    case GemmFormat::int8_smoothquant:
      return {"int8_smoothquant", "int8", "fp8", "bf16"};
    case GemmFormat::int8_weight_only:
      return {"int8_weight_only", "bf16", "fp16"};
    case GemmFormat::int4_weight_only:
      return {"int4_weight_only", "int8_weight_only", "bf16"};
    case GemmFormat::bf16:
      return {"bf16", "fp16"};
  }
  return {};
}

KernelQuestion gemm_question(const Request& request, const Machine& machine, std::string_view) {
  GemmShape shape;
  shape.m = needed(request, "m");
  shape.n = needed(request, "n");
  shape.k = needed(request, "k");
  shape.batch = usual(request, "batch", 1);
  shape.replayed = yes(request, "replayed", false);
  shape.sparse = yes(request, "sparse", false);
  if (const Asked format{request, "precision"}) {
    Choices<GemmFormat> choices;
    for (int i = 0; i <= static_cast<int>(GemmFormat::int4_weight_only); ++i) {
      choices.emplace_back(to_text(GemmFormat(i)), GemmFormat(i));
    }
    shape.format = format.choice(choices);
  }
  const Precision unit = precision_of(shape.format);
  check_unit(machine, unit);
  return {.op = "gemm", .variants = variants_of(shape.format), .shape = shape, .unit = unit};
}

// --- memory-bound kernels -----------------------------------------------------------------------

KernelQuestion traffic_question(const Request& request, const Machine&, std::string_view name) {
  const TrafficKernel& kernel = *traffic_kernel_named(name);
  const Precision element = precision(request, "precision", Precision::bf16,
                                      {Precision::fp64, Precision::fp32, Precision::fp16,
                                       Precision::bf16, Precision::fp8, Precision::int8});
  TrafficShape shape = traffic_shape(kernel, needed(request, "rows"), needed(request, "cols"),
                                     element_size(element));
  shape.replayed = yes(request, "replayed", false);
  return {.op = "memory",
          .variants = {std::string(kernel.variant), "elementwise"},
          .shape = shape,
          .unit = Precision::fp32};
}

// --- attention ----------------------------------------------------------------------------------

enum class Phase { prefill, decode, backward };

// That of the lengths where none is named: one new token is decoding.
Phase phase_of(const Request& request) {
  const Asked phase(request, "phase");
  if (!phase) return usual(request, "q-len", 2) == 1 ? Phase::decode : Phase::prefill;
  return phase.choice(Choices<Phase>{
      {"prefill", Phase::prefill}, {"decode", Phase::decode}, {"backward", Phase::backward}});
}

struct Lengths {
  std::int64_t queries = 1, keys = 1;
};

Lengths lengths_of(const Request& request, Phase phase) {
  Lengths lengths;
  lengths.queries = phase == Phase::decode ? usual(request, "q-len", 1) : needed(request, "q-len");
  lengths.keys = phase == Phase::decode ? needed(request, "kv-len")
                                        : usual(request, "kv-len", lengths.queries);
  if (lengths.keys >= lengths.queries) return lengths;
  throw InputError("fewer keys than new tokens", "keys count the new tokens", "", "--kv-len");
}

Precision cache_precision(const Request& request, Precision query) {
  return precision(request, "kv-precision", query,
                   {Precision::bf16, Precision::fp16, Precision::fp8});
}

KernelQuestion attention_question(const Request& request, const Machine& machine,
                                  std::string_view) {
  const Phase phase = phase_of(request);
  const Lengths lengths = lengths_of(request, phase);
  AttentionShape shape;
  shape.batch = usual(request, "batch", 1);
  shape.heads = needed(request, "heads");
  shape.kv_heads = usual(request, "kv-heads", shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    throw InputError("the heads do not share keys evenly", "", "give a divisor of --heads",
                     "--kv-heads");
  }
  shape.head_dim = usual(request, "head-dim", 128);
  shape.q_len = lengths.queries;
  shape.kv_len = lengths.keys;
  if (const Asked window{request, "window"}) shape.window = window.whole(1, longest_side);
  shape.causal = yes(request, "causal", true);
  shape.backward = phase == Phase::backward;
  shape.query = precision(request, "precision", Precision::bf16,
                          {Precision::bf16, Precision::fp16, Precision::fp8});
  shape.cache = cache_precision(request, shape.query);
  shape.replayed = yes(request, "replayed", false);
  std::string op(attention_op(shape));
  if (op == "attention-decode" && phase == Phase::prefill) op = "attention-prefill";
  if (phase == Phase::decode) op = "attention-decode";
  return {.op = std::move(op),
          .variants = {attention_variant(shape), "bf16"},
          .shape = shape,
          .unit = matrix_precision(shape, machine.device)};
}

KernelQuestion mla_question(const Request& request, const Machine& machine, std::string_view) {
  const Phase phase = phase_of(request);
  if (phase == Phase::backward) {
    Asked(request, "phase").fail("has no model", "prefill and decode have one");
  }
  const Lengths lengths = lengths_of(request, phase);
  const Precision cache = cache_precision(request, Precision::bf16);
  KernelQuestion question = {.op = "mla-prefill",
                             .variants = {"bf16", "bf16_kv_fp8"},
                             .shape = {},
                             .unit = Precision::bf16};
  if (element_size(cache) < Bytes(2)) std::ranges::reverse(question.variants);
  check_unit(machine, question.unit);
  const std::int64_t batch = usual(request, "batch", 1), heads = needed(request, "heads");
  if (phase == Phase::decode) {
    question.op = "mla-decode";
    MlaDecodeShape shape;
    shape.batch = batch;
    shape.heads = heads;
    shape.queries = lengths.queries;
    shape.keys = lengths.keys;
    shape.element = element_size(cache);
    question.shape = shape;
  } else {
    MlaPrefillShape shape;
    shape.batch = batch;
    shape.heads = heads;
    shape.queries = lengths.queries;
    shape.keys = lengths.keys;
    shape.element = element_size(cache);
    question.shape = shape;
  }
  return question;
}

// --- collectives --------------------------------------------------------------------------------

constexpr std::array nccl_ops = {NcclOp::all_reduce, NcclOp::all_gather, NcclOp::reduce_scatter,
                                 NcclOp::all_to_all, NcclOp::broadcast,  NcclOp::send_recv};
constexpr std::int64_t most_gpus = 1 << 20, most_in_a_node = 1024;
constexpr Bytes most_bytes(1e15);

Cluster cluster_of(const Request& request, const Machine& machine) {
  const auto text = [&](const char* flag, const std::string& value) {
    const Asked asked(request, flag);
    return asked ? asked.text() : value;
  };
  const Asked asked(request, "gpus");
  if (!asked) throw InputError("the operator needs --gpus", "", "see orrery kernel --help");
  const std::int64_t gpus = asked.whole(2, most_gpus);
  const Asked in_node(request, "gpus-per-node");
  const Node node = machine.catalog.node(text("node", machine.gpu.node));
  const std::int64_t used =
      in_node ? in_node.whole(1, most_in_a_node) : std::min(gpus, node.gpus.value_or(gpus));
  const std::string fabric = text("fabric", gpus > used ? node.fabric.value_or("") : "");
  return make_cluster(machine.gpu, node,
                      fabric.empty() ? std::nullopt : std::optional(machine.catalog.fabric(fabric)),
                      gpus, used);
}

KernelQuestion collective_question(const Request& request, const Machine& machine,
                                   std::string_view name) {
  const Asked bytes(request, "bytes");
  if (!bytes) throw InputError("the operator needs --bytes", "", "such as --bytes 1GiB");
  CollectiveShape shape;
  shape.op = *std::ranges::find(nccl_ops, name, [](NcclOp op) { return to_text(op); });
  shape.size = bytes.quantity<Bytes>("B");
  if (shape.size < Bytes(1) || shape.size > most_bytes) {
    bytes.fail("is out of range", "give 1 B to 1 PB");
  }
  shape.dtype = precision(
      request, "precision", Precision::bf16,
      {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp8, Precision::int8});
  const Cluster cluster = cluster_of(request, machine);
  const Network network = network_of(cluster);
  shape.ranks = cluster.gpus;
  shape.local = cluster.gpus_per_node;
  shape.nodes = cluster.nodes();
  shape.on = {.architecture = network.architecture,
              .link = network.link,
              .intra = network.intra,
              .switch_reduces = network.in_switch_reduction,
              .inter = network.inter * network.inter_efficiency,
              .fabric_latency = network.fabric_latency};
  return {.op = "collective",
          .variants = {std::string(to_text(network.link)), "nvlink"},
          .shape = shape,
          .unit = Precision::bf16};
}

std::vector<KernelOp> all_ops() {
  std::vector<KernelOp> ops = {
      {"gemm", {"m", "n", "k", "batch", "precision", "sparse", "replayed"}, gemm_question},
      {"attention",
       {"batch", "heads", "kv-heads", "head-dim", "q-len", "kv-len", "window", "causal", "phase",
        "precision", "kv-precision", "replayed"},
       attention_question},
      {"mla", {"batch", "heads", "q-len", "kv-len", "phase", "kv-precision"}, mla_question},
  };
  for (const NcclOp op : nccl_ops) {
    ops.push_back({to_text(op),
                   {"bytes", "gpus", "gpus-per-node", "node", "fabric", "precision"},
                   collective_question});
  }
  for (const TrafficKernel& kernel : traffic_kernels()) {
    ops.push_back({kernel.name, {"rows", "cols", "precision", "replayed"}, traffic_question});
  }
  return ops;
}

}  // namespace

std::span<const KernelOp> kernel_ops() {
  static const std::vector<KernelOp> ops = all_ops();
  return ops;
}

const KernelOp& kernel_op_named(const std::string& name) {
  std::vector<std::string> names;
  for (const KernelOp& op : kernel_ops()) {
    if (op.name == name) return op;
    names.emplace_back(op.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw InputError("unknown operator " + in_quotes(name), "",
                   hint.empty() ? "the operators are " + join(names) : hint);
}

std::string settle(KernelShape& shape, std::string_view library, const Gpu& gpu) {
  if (auto* gemm = std::get_if<GemmShape>(&shape)) gemm->policy = policy_of(library, gemm->format);
  if (auto* attention = std::get_if<AttentionShape>(&shape)) {
    attention->kernels = attention_kernels(library, gpu.architecture);
    return attention_warning(*attention, library);
  }
  // SGLang's FlashAttention-3 back end runs prefill on the latents (see mla_table.cpp).
  if (auto* prefill = std::get_if<MlaPrefillShape>(&shape)) prefill->absorbed = library == "sglang";
  return "";
}

}  // namespace orrery::cli

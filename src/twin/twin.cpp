#include "twin/twin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "cost/price.h"
#include "model/build.h"
#include "twin/power.h"
#include "twin/remedy.h"
#include "twin/run_time.h"

namespace orrery {
namespace {

Program program_of(const Scenario& scenario) {
  const OpGraph graph = training_graph(scenario.model, graph_options(scenario));
  return lower(graph, scenario.strategy,
               recipe_of(scenario.framework, scenario.strategy, scenario.job));
}

// What the framework holds beside a Program's buffers.
Bytes beside(const Footprint& footprint, const Framework& framework) {
  return framework.context.value_or(Bytes(0)) + framework.slack.value_or(0) * total(footprint);
}

Peak memory_of(const Program& program, const Framework& framework) {
  Peak peak = peak_memory(program);
  const auto add = [&](Footprint& footprint) {
    footprint[static_cast<std::size_t>(MemoryTerm::framework)] += beside(footprint, framework);
  };
  add(peak.footprint);
  for (Footprint& footprint : peak.by_class) add(footprint);
  return peak;
}

// The same peak from fewer micro-batches: a pipeline that frees as it goes holds no more once it is
// full.
Scenario shortened(Scenario scenario) {
  Strategy& s = scenario.strategy;
  if (s.schedule == Schedule::gpipe) return scenario;
  const std::int64_t enough = 4 * s.pp * s.vpp;
  if (s.micro_batches() > enough) s.global_batch = s.dp * s.micro_batch * enough;
  return scenario;
}

// What the GPUs of one node put into its memory, if all are of the class that puts most.
Bytes host_memory(const Peak& peak, const Cluster& cluster) {
  Bytes most;
  for (const Footprint& footprint : peak.by_class) {
    most = std::max(most, footprint[static_cast<std::size_t>(MemoryTerm::host)]);
  }
  return static_cast<double>(cluster.gpus_per_node) * most;
}

std::vector<std::pair<std::string, Bytes>> largest_first(const Footprint& footprint) {
  std::vector<std::pair<std::string, Bytes>> terms;
  for (std::size_t i = 0; i < footprint.size(); ++i) {
    if (static_cast<MemoryTerm>(i) == MemoryTerm::host) continue;
    terms.emplace_back(name_of(static_cast<MemoryTerm>(i)), footprint[i]);
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return terms;
}

ClassId busiest(const Estimate& estimate) {
  ClassId best(0);
  for (const ClassId id : estimate.busy.ids()) {
    if (estimate.busy[id] > estimate.busy[best]) best = id;
  }
  return best;
}

std::vector<KernelShare> kernel_shares(const Program& program, const Prices& prices, ClassId id) {
  const IdVector<KernelId, std::int64_t> launches = totals(program, program.classes[id]).launches;
  std::vector<KernelShare> shares;
  for (const KernelId kernel : program.kernels.ids()) {
    const std::int64_t count = launches[kernel];
    if (count == 0) continue;
    shares.push_back(
        {program.kernels[kernel].name, count, static_cast<double>(count) * prices.kernels[kernel]});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const KernelShare& a, const KernelShare& b) { return a.time > b.time; });
  return shares;
}

// FLOPs that recomputation adds, over the model's own. What a fused kernel computes again inside
// itself does not count, as nobody counts it.
double recomputed_share(const Program& program) {
  Flop again, model;
  for (const RankClass& ranks : program.classes) {
    const double count = static_cast<double>(ranks.ranks);
    const Totals work = totals(program, ranks);
    model += count * work.model_flop;
    for (const KernelId id : program.kernels.ids()) {
      if (!program.kernels[id].recomputed) continue;
      again += count * static_cast<double>(work.launches[id]) * program.kernels[id].flop;
    }
  }
  return model > Flop() ? again / model : 0;
}

// Large jobs lose time to what no single rank shows: jitter, stragglers, congestion. The
// framework's `growth` is that share of the step, for each doubling of nodes.
void add_growth(const Scenario& scenario, Answer& answer) {
  const double nodes = static_cast<double>(scenario.cluster.nodes());
  const Seconds lost = scenario.framework.growth.value() * std::log2(nodes) * answer.step;
  answer.time.overhead += lost;
  answer.step += lost;
}

// FLOPs of one token that the model needs. Conventions count the training of all weights; what a
// partly frozen model needs is the Program's own count.
Flop token_flop(const Scenario& scenario, const Program& program) {
  const Strategy& s = scenario.strategy;
  if (scenario.job.trains_all()) {
    const double recomputed = s.recompute == Recompute::full ? s.recompute_share : 0;
    return flop_per_token(scenario.model, s.seq_len, scenario.convention, recomputed);
  }
  Flop all;
  for (const RankClass& ranks : program.classes) {
    all += static_cast<double>(ranks.ranks) * totals(program, ranks).model_flop;
  }
  return all / static_cast<double>(program.tokens);
}

// Padding is computed and not trained: it counts in no rate.
void rate(const Scenario& scenario, const Program& program, Answer& answer) {
  const double gpus = static_cast<double>(scenario.cluster.gpus);
  const double tokens = (1 - scenario.job.padding) * static_cast<double>(program.tokens);
  answer.tokens_per_s = tokens / answer.step.value();
  answer.tokens_per_s_per_gpu = answer.tokens_per_s / gpus;
  answer.model_flops_per_gpu = token_flop(scenario, program).value() * answer.tokens_per_s_per_gpu;
  answer.mfu = answer.model_flops_per_gpu / answer.peak.value();
  answer.hfu = answer.mfu * (1 + recomputed_share(program));
}

void charge(const Scenario& scenario, Answer& answer) {
  const double gpus = static_cast<double>(scenario.cluster.gpus);
  const Seconds all_gpus = gpus * answer.step;
  answer.step_energy = all_gpus * answer.gpu_power;
  const double tokens = answer.tokens_per_s * answer.step.value();
  if (scenario.gpu_price) {
    answer.step_cost = all_gpus * *scenario.gpu_price;
    answer.cost_per_million_tokens = *answer.step_cost * (1e6 / tokens);
  }
  if (scenario.tokens) {
    answer.run_time = run_time(scenario, answer.step);
    if (scenario.gpu_price) answer.run_cost = gpus * *answer.run_time * *scenario.gpu_price;
  }
}

void compare(const Scenario& scenario, const EvidenceTable& table, Answer& answer) {
  answer.evidence = track_record(table, scenario);
  answer.band = {answer.step / (1 + answer.evidence.spread),
                 answer.step / (1 - answer.evidence.spread)};
  if (answer.evidence.extrapolated) {
    answer.warnings.push_back(
        answer.evidence.n == 0
            ? "no published measurement like this one was compared: " + answer.evidence.group
            : "far from the nearest published measurement, " + answer.evidence.nearest);
  }
}

// Without what the allocator caches and gives back before it fails.
Bytes cannot_do_without(const Scenario& scenario, const Answer& answer) {
  if (!scenario.framework.gives_back) return answer.needed();
  const Bytes framework = answer.memory.footprint[static_cast<std::size_t>(MemoryTerm::framework)];
  const Bytes allocated = answer.needed() - framework;
  return answer.needed() - scenario.framework.slack.value_or(0) * allocated;
}

void check_memory(const Scenario& scenario, Answer& answer, Unfit unfit) {
  answer.feasible = cannot_do_without(scenario, answer) <= answer.capacity;
  if (answer.feasible) {
    if (answer.fill() == Fill::red) {
      answer.warnings.push_back(fmt::format(
          "the framework would reserve {:.1f} % more than there is: its allocator has to "
          "give back what it caches, which takes time",
          100 * (answer.needed() / answer.capacity - 1)));
    }
    if (answer.fill() == Fill::yellow) {
      answer.warnings.push_back(
          fmt::format("only {:.1f} % of the memory is left; fragments of the allocator or another "
                      "version of the framework may take it",
                      100 * (1 - answer.needed() / answer.capacity)));
    }
    return;
  }
  answer.reason =
      unfit == Unfit::explain
          ? shortfall(scenario, answer.classes[answer.memory.at], answer.needed(), answer.capacity,
                      largest_first(answer.memory.footprint))
          : fmt::format("needs {:.1f} GiB of {:.1f} GiB", answer.needed().value() / (1 << 30),
                        answer.capacity.value() / (1 << 30));
}

void set_job(GraphOptions& options, const Job& job) {
  options.documents = job.documents;
  options.frozen = job.freezes_stack;
  options.adapter_rank = job.lora_rank;
  options.adapt_attention = job.adapts_attention;
  options.adapt_feed_forward = job.adapts_feed_forward;
  options.train_embeddings = job.trains_embeddings;
  options.quantised = job.task == Task::qlora;
  options.frozen_towers = job.freezes_towers;
  options.frozen_projector = job.freezes_projector;
  options.images = job.images;
  options.expert_load = job.expert_load;
}

// Adam's two fp32 moments, which every framework's figure of its optimizer has beside the master
// copy, if it keeps one.
constexpr double adam_moments = 8;
// NF4 with its scales quantised again (QLoRA, arXiv 2305.14314, section 3): 4 bits, and 8 a block
// of 64 weights, and 32 a block of 256 of those.
constexpr double nf4_bytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;

}  // namespace

GraphOptions graph_options(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const bool wide = scenario.precision == Precision::fp32 || scenario.precision == Precision::tf32;
  GraphOptions options{.micro_batch = s.micro_batch, .seq_len = s.seq_len};
  options.compute = wide                                    ? Precision::fp32
                    : scenario.precision == Precision::fp16 ? Precision::fp16
                                                            : Precision::bf16;
  options.matrices = scenario.precision;
  options.flash_attention = scenario.attention != AttentionKernel::unfused;
  options.dropout = scenario.framework.defaults.dropout;
  options.causal = scenario.model.causal;
  options.padded_vocab = padded_vocab(scenario);
  set_job(options, scenario.job);
  return options;
}

Setting setting_of(const Scenario& scenario) {
  return {.model = scenario.model,
          .rules = scenario.framework.rules,
          .gpus = scenario.cluster.gpus,
          .gpus_per_node = scenario.cluster.gpus_per_node,
          .eight_bit = scenario.precision == Precision::fp8,
          .fused_attention = scenario.attention != AttentionKernel::unfused};
}

Recipe recipe_of(const Framework& framework, const Strategy& strategy, const Job& job) {
  Recipe recipe;
  recipe.gradient_bytes = framework.per_parameter.gradients.value();
  recipe.reduce_bytes = framework.per_parameter.reduce.value();
  recipe.gather_bytes = framework.per_parameter.gather.value();
  recipe.weight_bytes = framework.per_parameter.weights.value();
  recipe.optimizer_bytes =
      framework.per_parameter.optimizer.value() - adam_moments + moment_bytes(job.optimizer);
  recipe.quantised_bytes = nf4_bytes;
  recipe.weight_copies = static_cast<double>(job.fp8_copies);
  recipe.head_gradient_bytes = framework.per_parameter.head_gradient.value();
  recipe.kept = framework.kept.value();
  recipe.logit_bytes = framework.per_parameter.logit.value();
  recipe.overlap_data = framework.overlaps_gradients;
  recipe.reshard_after_forward = framework.reshard_after_forward &&
                                 !(strategy.pp > 1 && framework.holds_gathered_in_pipelines);
  recipe.scatters_sends = framework.scatters_sends;
  recipe.shards_checkpoints = framework.shards_checkpoints;
  return recipe;
}

Bytes capacity_of(const Gpu& gpu, const Framework& framework) {
  using namespace literals;
  // A CUDA context and NCCL's buffers, where the framework's own figure leaves them out: 0.4 to 0.6
  // GB for the first on an H100, 1.5 GiB for both in the runs that torchtitan and BLOOM print.
  const Bytes apart = std::max(1.5_GiB - framework.context.value_or(Bytes(0)), Bytes(0));
  return gpu.memory.usable.value_or(gpu.memory.nominal.value()) - apart;
}

std::string_view name_of(Fill fill) {
  switch (fill) {
    case Fill::green:
      return "green";
    case Fill::yellow:
      return "yellow";
    case Fill::red:
      return "red";
  }
  return "";
}

Fill Answer::fill() const {
  const double share = needed() / capacity;
  return share > 1 ? Fill::red : share >= yellow_from ? Fill::yellow : Fill::green;
}

std::int64_t padded_vocab(const Scenario& scenario) {
  return padded_vocabulary(scenario.model.vocab, scenario.strategy.tp,
                           scenario.framework.rules.vocab_multiple);
}

std::vector<HeldBuffer> buffers_at_peak(const Scenario& scenario, ClassId at) {
  const Program program = program_of(scenario);
  std::vector<HeldBuffer> buffers = held_at_peak(program.classes[at]);
  const Bytes more = beside(peak_memory(program).by_class[at], scenario.framework);
  if (more > Bytes()) {
    buffers.push_back({"context and allocator slack", MemoryTerm::framework, 1, more});
  }
  return buffers;
}

Peak scenario_memory(const Scenario& scenario) {
  EXPECT(broken_rules(scenario.strategy, setting_of(scenario)).empty());
  return memory_of(program_of(shortened(scenario)), scenario.framework);
}

Answer price_scenario(const Scenario& scenario, const EvidenceTable& table, Unfit unfit) {
  Answer answer;
  answer.warnings = scenario.warnings;
  answer.shards_weights = scenario.strategy.zero == Zero::weights;
  answer.kind = kind_of(scenario);
  answer.network = network_rate(scenario.cluster);
  answer.capacity = capacity_of(scenario.cluster.gpu, scenario.framework);
  answer.peak = scenario.cluster.gpu.required_peak(scenario.precision);
  const std::vector<std::string> broken = broken_rules(scenario.strategy, setting_of(scenario));
  if (!broken.empty()) {
    answer.reason = join(broken, "; ");
    return answer;
  }
  const Program program = program_of(scenario);
  for (const RankClass& ranks : program.classes) answer.classes.push_back(ranks.name);
  answer.memory = memory_of(program, scenario.framework);
  answer.host = host_memory(answer.memory, scenario.cluster);
  check_memory(scenario, answer, unfit);
  if (!answer.feasible && unfit == Unfit::leave) return answer;
  for (std::string& trap : traps(scenario.strategy, setting_of(scenario))) {
    answer.warnings.push_back(std::move(trap));
  }

  const Prices prices = price(program, {.cluster = scenario.cluster,
                                        .kernels = scenario.kernels,
                                        .framework = scenario.framework,
                                        .attention = scenario.attention});
  const Estimate timing = estimate(program, prices);
  answer.priced = true;
  answer.step = timing.step;
  answer.time = timing.breakdown;
  add_growth(scenario, answer);
  const ClassId slowest = busiest(timing);
  answer.kernels = kernel_shares(program, prices, slowest);
  rate(scenario, program, answer);
  answer.gpu_power = mean_gpu_power(program, prices, scenario.kernels.device, answer.step);
  charge(scenario, answer);
  compare(scenario, table, answer);
  return answer;
}

Answer predict(const Scenario& scenario, const EvidenceTable& table) {
  Answer answer = price_scenario(scenario, table, Unfit::explain);
  if (answer.priced && scenario.job.expert_load > 1) {
    Scenario balanced = scenario;
    balanced.job.expert_load = 1;
    answer.balanced = total(scenario_memory(balanced).footprint);
  }
  return answer;
}

}  // namespace orrery

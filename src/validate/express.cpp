#include "validate/express.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "validate/labels.h"
#include "validate/notes.h"
#include "validate/throughput.h"

namespace orrery {
namespace {

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a framework's own fine-tuning recipes adapt.
struct Adapters {
  std::string_view framework;
  std::int64_t rank;
  std::string_view targets, where;
};
constexpr std::array usual_adapters = {
    Adapters{"nemo", 16, "attention", "NeMo's LoRA recipes adapt queries, keys and values"},
    Adapters{"megatron-bridge", 16, "attention", "as NeMo's LoRA recipes"},
    Adapters{"hf", 64, "all", "Qwen's finetune.py"},
    Adapters{"fsdp-qlora", 64, "all", "fsdp_qlora's train.py"},
    Adapters{"litgpt", 8, "attention", "LitGPT's finetune/lora.py adapts queries and values"}};

// Short samples in one sequence, none of which sees another: in NeMo's recipes tokens see about 0.3
// of their sequence.
constexpr std::string_view usual_packing = "3.3";

class Expression {
 public:
  explicit Expression(const Measurement& row) : row_(row), notes_(row.other) {}

  std::variant<Expressed, Skip> run() {
    constexpr std::array steps = {&Expression::machine, &Expression::framework,
                                  &Expression::task,    &Expression::precision,
                                  &Expression::layout,  &Expression::model,
                                  &Expression::batch,   &Expression::memory_choices,
                                  &Expression::chunks,  &Expression::kernels};
    for (const auto step : steps) {
      if (std::string reason = (this->*step)(); !reason.empty()) return Skip{std::move(reason)};
    }
    measure();
    out_.request.architecture = model_;
    out_.request.place = row_.id;
    return std::move(out_);
  }

 private:
  // Each returns why the row cannot be expressed, or nothing.
  std::string machine();
  std::string framework();
  std::string task();
  std::string precision();
  std::string layout();
  std::string model();
  std::string batch();
  std::string memory_choices();
  std::string chunks();
  std::string kernels();
  void measure();

  void adapters();
  void divide_submission();
  void experts();
  void zero();
  void recompute();
  void sequence_parallel();
  std::int64_t default_micro_batch(std::int64_t per_replica);
  std::pair<std::int64_t, std::string> default_chunks() const;
  std::string uneven_split(std::int64_t chunks) const;

  void set(const std::string& flag, std::string value) {
    out_.request.values[flag] = std::move(value);
  }
  void set(const std::string& flag, std::int64_t value) { set(flag, std::to_string(value)); }
  void assume(const std::string& flag, const std::string& value, const std::string& why) {
    out_.defaults.push_back(flag + " = " + value + " (" + why + ")");
  }
  template <class T>
  void set_default(const std::string& flag, T value, const std::string& why) {
    set(flag, value);
    assume(flag, out_.request.values[flag], why);
  }
  // Left to the framework's own entry in the catalog.
  void leave(const std::string& flag) {
    out_.defaults.push_back(flag + " as " + out_.framework + " does");
  }

  bool framework_is(std::initializer_list<std::string_view> names) const {
    return one_of(out_.framework, names);
  }
  bool fine_tunes() const { return task_ != "pretrain"; }
  bool adapts() const { return task_ == "lora" || task_ == "qlora"; }
  // MLPerf submissions: on NVIDIA's GPUs all run NVIDIA's own code.
  bool is_submission() const { return row_.source.starts_with("mlcommons/"); }
  // The stacks of 2020 to 2022 are those that trained in fp16.
  bool early() const { return out_.request.values.at("precision") == "fp16"; }
  bool divides_pipeline(std::int64_t chunks) const {
    return chunks <= 1 || (global_batch_ / (dp_ * micro_batch_)) % pp_ == 0;
  }

  const Measurement& row_;
  const Notes notes_;
  std::string task_;
  Expressed out_;
  Architecture model_;
  std::int64_t tp_ = 1, pp_ = 1, cp_ = 1, dp_ = 1;
  std::int64_t seq_len_ = 0, global_batch_ = 0, micro_batch_ = 1;
  bool batch_is_invented_ = false, length_varies_ = false;
  Recompute recompute_ = Recompute::none;
  double recompute_share_ = 1;
};

std::string Expression::machine() {
  if (row_.gpu.empty()) return "GPU not stated";
  if (!row_.gpus) return "number of GPUs not stated";
  out_.gpu = gpu_named(row_.gpu);
  out_.gpus = *row_.gpus;
  set("gpu", out_.gpu);
  set("gpus", out_.gpus);
  const bool single = one_of(out_.gpu, {"gh200"});
  const std::int64_t full = single ? 1 : out_.gpu.starts_with("v100-sxm3") ? 16 : 8;
  const std::int64_t per_node = std::min(row_.gpus_per_node.value_or(full), out_.gpus);
  if (!row_.gpus_per_node && out_.gpus > 1) {
    set_default("gpus-per-node", per_node, "the usual server");
  } else {
    set("gpus-per-node", per_node);
  }
  if (words_of(row_.interconnect).find(" jean zay ") != std::string::npos) {
    if (out_.gpu.starts_with("a100-sxm")) set("node", "jean-zay-a100");
    if (out_.gpu.starts_with("v100-sxm2")) set("node", "jean-zay-v100");
  }
  if (out_.gpus <= per_node) return "";
  if (const auto fabric = fabric_named(row_.interconnect, row_.gpus_per_node.value_or(full))) {
    set("fabric", *fabric);
  } else if (out_.gpu.starts_with("a100") || out_.gpu.starts_with("a800")) {
    set_default("fabric", "hdr200", "200 Gb/s a GPU, usual beside an A100");
  } else if (one_of(out_.gpu.substr(0, 4), {"h100", "h200", "h800", "h20", "b200", "gh20"})) {
    set_default("fabric", "ndr400-rail", "400 Gb/s a GPU, usual from the H100 on");
  } else {
    out_.defaults.push_back("fabric as the GPU's usual server has");
  }
  return "";
}

std::string Expression::framework() {
  if (const auto name = framework_named(row_.framework)) {
    out_.framework = *name;
    set("framework", *name);
    return "";
  }
  if (is_submission() && has_word(words_of(row_.framework), "pytorch")) {
    set_default("framework", out_.framework = "nemo", "NVIDIA's code, as MLPerf submissions run");
    return "";
  }
  const auto zero = zero_named(row_.zero_stage);
  const bool divided = row_.tp.value_or(1) > 1 || row_.pp.value_or(1) > 1;
  out_.framework = divided ? "megatron" : zero && zero->stage == 3 ? "fsdp" : "ddp";
  set_default("framework", out_.framework,
              row_.framework.empty() ? "not stated; its layout is like this one's"
                                     : row_.framework + " is laid out like this one");
  return "";
}

// A quantised LoRA is a QLoRA, whatever its table calls it.
std::string Expression::task() {
  task_ = row_.task == "lora" && notes_.say("nf4 ") ? "qlora" : row_.task;
  if (!one_of(task_, {"pretrain", "sft", "lora", "qlora"}))
    return "task " + task_ + " is not known";
  if (notes_.say("adapter")) return "adapters of prompts (LLaMA-Adapter) are not modelled";
  if (!fine_tunes()) return "";
  set("task", task_);
  if (task_ == "sft" && framework_is({"hf"})) {
    set_default("framework", out_.framework = "deepspeed",
                "all weights are tuned under DeepSpeed, as by Qwen's finetune_ds.sh");
  }
  if (adapts()) adapters();
  if (framework_is({"nemo", "megatron-bridge"}) && !is_submission()) {
    set_default("packed", std::string(usual_packing), "NeMo's recipes pack short samples");
  }
  return "";
}

void Expression::adapters() {
  for (const Adapters& usual : usual_adapters) {
    if (usual.framework != out_.framework) continue;
    set_default("lora-rank", usual.rank, std::string(usual.where));
    set_default("lora-targets", std::string(usual.targets), std::string(usual.where));
  }
  if (notes_.say("embeddings trained ")) set("train-embeddings", "true");
}

std::string Expression::precision() {
  if (row_.precision.empty()) return "precision not stated";
  const std::string words = words_of(row_.precision);
  set("precision", words.substr(1, words.find(' ', 1) - 1));
  const bool core = has_word(words_of(row_.framework), "core");
  if (framework_is({"megatron"}) && early() && !core) {
    set("framework", out_.framework = "megatron-2021");
  }
  if (framework_is({"megatron-deepspeed"}) && notes_.say("bf16 optimizer ")) {
    set("framework", out_.framework = "megatron-deepspeed-bf16");
  }
  const auto zero = zero_named(row_.zero_stage);
  if (framework_is({"megatron-deepspeed"}) && early() && zero && zero->stage == 3) {
    set_default("framework", out_.framework = "deepspeed-2021", "ZeRO-3 is DeepSpeed's own");
  }
  if (framework_is({"deepspeed"}) && early()) {
    set_default("framework", out_.framework = "deepspeed-2021", "fp16 stacks are of that age");
  }
  if (framework_is({"megatron"}) && notes_.say("tp comm overlap ")) {
    set_default("framework", out_.framework = "nemo", "overlaps tensor parallelism as NeMo does");
  }
  return "";
}

// MLPerf's LoRA of Llama 2 70B where no configuration file was found: tensor ranks until the model
// fits (4 of 80 GB, 2 of 141 GB, as the files that were found have), and as many as leave each
// replica a sequence, context ranks from the fifth on.
void Expression::divide_submission() {
  const std::int64_t fits = out_.gpu.starts_with("h200") ? 2 : 4;
  const std::int64_t ranks = std::max(fits, out_.gpus / row_.global_batch_seqs.value_or(1));
  tp_ = std::min<std::int64_t>(4, ranks);
  cp_ = std::max<std::int64_t>(1, ranks / 4);
  out_.defaults.push_back("tp, cp = " + std::to_string(tp_) + ", " + std::to_string(cp_) +
                          " (as submissions that print theirs)");
}

std::string Expression::layout() {
  const bool divides_layers =
      framework_is({"megatron", "megatron-2021", "megatron-deepspeed", "megatron-deepspeed-bf16",
                    "nemo", "megatron-bridge", "internevo"});
  tp_ = row_.tp.value_or(1);
  pp_ = row_.pp.value_or(1);
  cp_ = row_.cp.value_or(1);
  if (divides_layers && out_.gpus > 1 && (!row_.tp || !row_.pp)) {
    if (!is_submission() || !adapts()) return "layout not stated (tp, pp)";
    divide_submission();
  }
  const std::int64_t product = tp_ * pp_ * cp_;
  const auto in_words = [&](std::int64_t dp) {
    std::string text = "tp " + std::to_string(tp_) + " x pp " + std::to_string(pp_);
    if (row_.cp) text += " x cp " + std::to_string(cp_);
    if (dp > 0) text += " x dp " + std::to_string(dp);
    return text + " is not " + std::to_string(out_.gpus) + " GPUs";
  };
  if (tp_ > out_.gpus || pp_ > out_.gpus || cp_ > out_.gpus || product > out_.gpus ||
      out_.gpus % product != 0) {
    return in_words(row_.dp.value_or(0));
  }
  dp_ = out_.gpus / product;
  if (row_.dp && *row_.dp != dp_) return in_words(*row_.dp);
  if (!row_.tp && !row_.pp && out_.gpus > 1 && !divides_layers) {
    out_.defaults.push_back("tp, pp = 1 (not stated, and " + out_.framework + " has no other)");
  }
  set("tp", tp_);
  set("pp", pp_);
  set("cp", cp_);
  set("dp", dp_);
  return "";
}

std::string Expression::model() {
  const auto longest = notes_.number("up to");
  if (!row_.seq_len && !longest) return "sequence length not stated";
  length_varies_ = !row_.seq_len;
  seq_len_ = row_.seq_len ? *row_.seq_len : *longest;
  if (length_varies_) assume("seq-len", std::to_string(seq_len_), "the longest sample, for memory");
  auto described = architecture_of(row_, out_.framework, tp_, pp_, out_.defaults);
  if (const Skip* skip = std::get_if<Skip>(&described)) return skip->reason;
  model_ = std::get<Architecture>(std::move(described));
  if (model_.max_positions == 0) model_.max_positions = seq_len_;
  if (model_.positions == Positions::learned) model_.position_rows = model_.max_positions;
  set("seq-len", out_.seq_len = seq_len_);
  if (model_.experts.count > 0) experts();
  return "";
}

void Expression::experts() {
  if (row_.ep) {
    set("ep", *row_.ep);
  } else {
    set_default("ep", 1, "not stated");
  }
  if (notes_.say("token drop ")) set("capacity", "1");
  // An expert divided like all else was Megatron-Core's only way, and its default for long.
  const bool early_recipes = row_.source.starts_with("NVIDIA/dgxc-benchmarking@35a9aec") ||
                             row_.source.starts_with("NVIDIA/dgxc-benchmarking@8f5cbb3");
  if (early_recipes && tp_ > 1) {
    set_default("etp", tp_, "recipes before 25.05 divide experts by tp");
  }
}

// Sequences of one forward pass, where a row has only those of a replica's whole step.
std::int64_t Expression::default_micro_batch(std::int64_t per_replica) {
  if (framework_is({"torchtitan"}) && pp_ > 1) {
    // One micro-batch a stage, torchtitan's default.
    const std::int64_t stages = pp_ * default_chunks().first;
    return per_replica % stages == 0 ? per_replica / stages : 1;
  }
  const bool first_megatron = has_word(words_of(row_.framework), "2020");
  const bool accumulates =
      pp_ > 1 || !(first_megatron || framework_is({"torchtitan", "fsdp", "jax", "ddp"}));
  return accumulates ? 1 : per_replica;
}

std::string Expression::batch() {
  const bool prints_memory = row_.peak_mem_gib || row_.outcome != Outcome::ok;
  const auto local = notes_.number("local batch");
  const bool never_accumulates = framework_is({"torchtitan", "fsdp", "ddp"}) && pp_ == 1;
  if (row_.global_batch_seqs) {
    global_batch_ = *row_.global_batch_seqs;
  } else if (local) {
    global_batch_ = *local * dp_;
    assume("global-batch", std::to_string(global_batch_), "the noted local batch x dp");
  } else if (never_accumulates && row_.micro_batch) {
    global_batch_ = *row_.micro_batch * dp_;
    assume("global-batch", std::to_string(global_batch_), "one micro-batch a rank");
  } else if (prints_memory) {
    // What a rank holds does not depend on more micro-batches than there are stages; its speed
    // does.
    batch_is_invented_ = true;
    global_batch_ = row_.micro_batch.value_or(1) * dp_ * pp_;
    assume("global-batch", std::to_string(global_batch_), "one micro-batch a stage, for memory");
  } else {
    return "global batch not stated";
  }
  if (row_.micro_batch) {
    micro_batch_ = *row_.micro_batch;
  } else {
    micro_batch_ = global_batch_ % dp_ == 0 ? default_micro_batch(global_batch_ / dp_) : 1;
    assume("micro-batch", std::to_string(micro_batch_),
           micro_batch_ == 1 ? "what such runs use"
           : pp_ > 1         ? "one micro-batch a stage, " + out_.framework + "'s default"
                             : "the whole batch of a replica at once");
  }
  if (global_batch_ % dp_ != 0 || (global_batch_ / dp_) % micro_batch_ != 0) {
    return "global batch " + std::to_string(global_batch_) + " does not divide into dp " +
           std::to_string(dp_) + " x micro-batch " + std::to_string(micro_batch_);
  }
  set("global-batch", global_batch_);
  set("micro-batch", micro_batch_);
  return "";
}

void Expression::zero() {
  if (const auto zero = zero_named(row_.zero_stage)) {
    set("zero", zero->stage);
    if (zero->shard_ranks && *zero->shard_ranks < dp_ * cp_) set("shard-ranks", *zero->shard_ranks);
  } else if (framework_is({"nemo", "megatron-bridge"})) {
    set_default("zero", 1, "NeMo's distributed optimizer");
  } else if (framework_is({"jax", "fsdp", "torchtitan", "llm-foundry", "fsdp-qlora"})) {
    set_default("zero", 3, "fully sharded, as the framework's recipes are");
  } else if (framework_is({"deepspeed"}) && task_ == "sft") {
    set_default("zero", 3, "as Qwen's finetune_ds.sh configures it");
  } else if (framework_is({"megatron-2021", "ddp"})) {
    set_default("zero", 0, "nothing was sharded then");
  } else if (dp_ * cp_ > 1) {
    leave("zero");
  }
}

void Expression::recompute() {
  std::string text;
  if (const auto named = recompute_named(row_.recompute, out_.framework, model_.layers)) {
    text = *named;
    set("recompute", text);
  } else if (framework_is({"hf", "megatron-2021"}) ||
             (framework_is({"deepspeed"}) && task_ == "sft")) {
    set_default("recompute", text = "full", "the usual choice there");
  } else if (framework_is({"jax"})) {
    set_default("recompute", text = "full", "its recipes fit in memory with nothing less");
  } else if (is_submission() && adapts()) {
    // Of the 80 layers as many as it takes to fit.
    const bool large = out_.gpu.starts_with("h200");
    const std::int64_t layers = std::max<std::int64_t>(1, model_.layers * (large ? 1 : 3) / 10);
    set_default(
        "recompute", text = "full:" + std::to_string(layers),
        large ? "a tenth of the layers, in 141 GB" : "three tenths of the layers, in 80 GB");
  } else if (framework_is(
                 {"nemo", "megatron-bridge", "megatron", "torchtitan", "fsdp", "ddp", "litgpt"})) {
    set_default("recompute", text = "none",
                "published recipes do not recompute unless they say so");
  } else {
    leave("recompute");
  }
  if (text.starts_with("full")) recompute_ = Recompute::full;
  if (text == "operators") recompute_ = Recompute::operators;
  if (text == "selective") recompute_ = Recompute::selective;
  if (text.starts_with("full:")) {
    recompute_share_ = std::stod(text.substr(5)) / static_cast<double>(model_.layers);
  }
}

void Expression::sequence_parallel() {
  if (row_.sp) {
    set("sequence-parallel", *row_.sp && tp_ > 1 ? "true" : "false");
  } else if (tp_ > 1) {
    const bool later =
        framework_is({"nemo", "megatron-bridge", "megatron", "torchtitan", "fsdp", "jax"});
    set_default("sequence-parallel", later ? "true" : "false",
                later ? "on in its recipes" : "not there yet");
  }
}

std::string Expression::memory_choices() {
  if (const auto offload = notes_.offload()) {
    set("offload", *offload);
  } else if (framework_is({"deepspeed-2021"}) && has_word(words_of(row_.framework), "zero") &&
             has_word(words_of(row_.framework), "megatron")) {
    set_default("offload", "activations",
                "checkpoints in host memory, Megatron-DeepSpeed's --checkpoint-in-cpu");
  }
  zero();
  recompute();
  sequence_parallel();
  return "";
}

// Chunks of layers a stage where a row does not print them, and why.
std::pair<std::int64_t, std::string> Expression::default_chunks() const {
  const std::int64_t layers = (model_.layers + pp_ - 1) / pp_;  // of a stage, empty slots included
  const std::int64_t twos = layers % 2 == 0 ? layers / 2 : layers;  // one each where odd
  const std::string label = words_of(row_.framework);
  if (has_word(label, "megatron") &&
      !framework_is({"megatron-deepspeed", "megatron-deepspeed-bf16"}) &&
      (notes_.say("interleav") || notes_.say("vpp "))) {
    return {twos, "two layers a chunk; interleaved, the number not printed"};
  }
  if (framework_is({"nemo", "megatron-bridge"})) {
    const bool submission = has_word(label, "release") || has_word(label, "nvidia");
    if (submission) return {twos, "two layers a chunk, as MLPerf submissions print"};
    if (pp_ < 4) return {1, "not interleaved"};
    if (layers <= 12) return {layers, "one layer a chunk, as NeMo's recipes for 96 layers print"};
    return {twos, "two layers a chunk, as NeMo's recipe for 126 layers prints"};
  }
  if (has_word(label, "meta") && tp_ > 1) return {twos, "two layers a chunk, as in the paper"};
  if (framework_is({"torchtitan"}) && notes_.say("interleaved ")) {
    return {2, "two chunks, torchtitan's default when interleaved"};
  }
  return {1, "not interleaved"};
}

// Layers of each chunk, where they divide neither evenly nor with embedding and head as one each:
// all equal but the last, as Megatron Bridge's recipes for DeepSeek-V3 print, or the last few one
// less.
std::string Expression::uneven_split(std::int64_t chunks) const {
  const std::int64_t layers = model_.layers, most = (layers + chunks - 1) / chunks;
  const std::int64_t last = layers - most * (chunks - 1);
  std::string text;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t evenly = layers / chunks + (chunk < layers % chunks ? 1 : 0);
    const std::int64_t count = last < 1 ? evenly : chunk + 1 < chunks ? most : last;
    text += (chunk > 0 ? "," : "") + std::to_string(count);
  }
  return text;
}

std::string Expression::chunks() {
  if (row_.vpp && pp_ > 1) {
    set("vpp", *row_.vpp);
  } else if (pp_ > 1) {
    const auto [chunks, why] = default_chunks();
    if (divides_pipeline(chunks)) {
      set_default("vpp", chunks, why);
    } else {
      set_default("vpp", 1, "its micro-batches do not divide into rounds of pp");
    }
  }
  const std::int64_t all = pp_ > 1 ? pp_ * std::stoll(out_.request.values.at("vpp")) : 1;
  const bool even = model_.layers % all == 0 || (model_.layers + 2) % all == 0;
  if (!even && model_.experts.count > 0 && model_.layers > all) {
    set_default("split", uneven_split(all), "the last chunks of a pipeline have fewer layers");
  }
  return "";
}

std::string Expression::kernels() {
  if (early() && framework_is({"hf"})) {
    set_default("attention", "unfused", "fp16 stacks come from before flash attention");
  }
  return "";
}

void Expression::measure() {
  if (batch_is_invented_ || length_varies_) {
    out_.without_throughput =
        length_varies_ ? "samples of many lengths" : "global batch not stated";
    return;
  }
  auto measured =
      measured_throughput(row_, model_, out_.gpus, global_batch_, recompute_, recompute_share_);
  if (const double* speed = std::get_if<double>(&measured)) {
    out_.tokens_per_s_per_gpu = *speed;
  } else {
    out_.without_throughput = std::get<Skip>(measured).reason;
  }
}

}  // namespace

std::variant<Expressed, Skip> express(const Measurement& row) { return Expression(row).run(); }

}  // namespace orrery

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "catalog/architecture_from_config.h"
#include "core/error.h"
#include "core/text.h"
#include "twin/asked.h"
#include "twin/scenario.h"

namespace orrery {
namespace {

constexpr std::int64_t max_ranks = 1 << 20;
constexpr std::int64_t max_tokens_a_sequence = 1 << 24;
constexpr std::int64_t max_batch = 1 << 24;
constexpr double max_price = 1e6;  // USD an hour; costs of the longest run stay finite
constexpr std::int64_t default_seq_len = 4096;
constexpr std::int64_t default_step_tokens = 4 << 20;

const Choices<AttentionKernel> attention_kernels = {{"flash", AttentionKernel::flash},
                                                    {"early-flash", AttentionKernel::early_flash},
                                                    {"unfused", AttentionKernel::unfused}};

std::string_view name_of(AttentionKernel kernel) {
  for (const auto& [name, value] : attention_kernels) {
    if (value == kernel) return name;
  }
  return "";
}

// "gpt/config.json" is gpt, "gpt.json" too.
std::string name_of_config(const std::string& path) {
  const std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  const bool plain = file.stem() == "config" && file.has_parent_path();
  return plain ? file.parent_path().filename().string() : file.stem().string();
}

class Resolver {
 public:
  Resolver(const Request& request, const Catalog& catalog) : request_(request), catalog_(catalog) {}

  Scenario run();

 private:
  Asked asked(std::string key) const { return Asked(request_, std::move(key)); }
  void assume(std::string field, std::string value, std::string reason) {
    scenario_.assumptions.push_back({std::move(field), std::move(value), std::move(reason)});
  }
  std::int64_t whole_or(const std::string& key, std::int64_t fallback, std::int64_t high,
                        const std::string& reason);
  std::string habit() const { return "what " + scenario_.framework.name + " does"; }
  std::int64_t usual_chunks() const;

  void refuse_unknown_keys() const;
  void refuse_unmodelled() const;
  void model();
  void machine();
  void precision();
  void framework();
  void power_and_price();
  void lengths();
  void division();
  void memory_choices();
  void batch();
  void schedule();
  void run_length();
  void convention();

  const Request& request_;
  const Catalog& catalog_;
  Scenario scenario_{};
};

std::int64_t Resolver::whole_or(const std::string& key, std::int64_t fallback, std::int64_t high,
                                const std::string& reason) {
  if (const Asked given = asked(key)) return given.whole(1, high);
  assume(key, std::to_string(fallback), reason);
  return fallback;
}

void Resolver::refuse_unknown_keys() const {
  std::vector<std::string> names;
  for (const RequestKey& key : request_keys()) names.emplace_back(key.name);
  for (const auto& [key, value] : request_.values) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::string hint = did_you_mean(key, names);
    throw InputError("unknown key " + in_quotes(key), "",
                     hint.empty() ? "the keys are " + join(names) : hint, request_.place);
  }
}

void Resolver::refuse_unmodelled() const {
  for (const char* key : {"ep", "etp"}) {
    const Asked given = asked(key);
    if (given && given.whole(1, max_ranks) != 1) {
      given.fail("asks for experts, and mixture of experts is not modelled yet",
                 fmt::format("leave --{} out", key));
    }
  }
  if (const Asked optimizer = asked("optimizer")) {
    if (optimizer.text() != "adam" && optimizer.text() != "adamw") {
      optimizer.fail("is not modelled yet", "only adam is, so far");
    }
  }
}

void Resolver::model() {
  if (request_.architecture) {
    scenario_.model = *request_.architecture;
    return;
  }
  const Asked name = asked("model");
  if (!name) {
    throw InputError("no model is given", "", "add --model NAME, such as --model llama-3.1-8b",
                     request_.place);
  }
  const std::string& text = name.text();
  if (text.find('/') != std::string::npos || text.ends_with(".json")) {
    scenario_.model = architecture_from_config(read_json(text), text);
    scenario_.model.name = name_of_config(text);
  } else {
    try {
      scenario_.model = catalog_.model(text);
    } catch (const InputError& error) {
      throw error.within(name.place());
    }
  }
  for (const std::string& fact : scenario_.model.defaults) {
    assume("model", fact, "the configuration leaves it to its family's code");
  }
}

void Resolver::machine() {
  const Asked gpu_name = asked("gpu");
  if (!gpu_name) {
    throw InputError("no GPU is given", "", "add --gpu NAME, such as --gpu h100-sxm",
                     request_.place);
  }
  const auto found = [](const Asked& name, auto find) {
    try {
      return find(name.text());
    } catch (const InputError& error) {
      throw error.within(name.place());
    }
  };
  const Gpu gpu = found(gpu_name, [&](const std::string& name) { return catalog_.gpu(name); });

  Node node;
  if (const Asked name = asked("node")) {
    node = found(name, [&](const std::string& text) { return catalog_.node(text); });
  } else {
    node = catalog_.node(gpu.node);
    assume("node", node.name, "the server that this GPU usually sits in");
  }

  std::int64_t product = 1;
  bool divided = false;
  for (const char* key : {"tp", "pp", "cp", "dp"}) {
    const Asked given = asked(key);
    if (!given) continue;
    divided = true;
    product *= given.whole(1, max_ranks);
    if (product > max_ranks) {
      given.fail(fmt::format("makes more than {} ranks in all", max_ranks), "use fewer");
    }
  }
  const std::int64_t gpus =
      whole_or("gpus", product, max_ranks, divided ? "tp x pp x cp x dp" : "one, unless told more");

  const Asked per_node = asked("gpus-per-node");
  const std::int64_t asked_per_node = per_node ? per_node.whole(1, 1024) : 0;
  const std::int64_t in_node = asked_per_node ? asked_per_node : node.gpus.value_or(1);

  std::optional<Fabric> fabric;
  if (const Asked name = asked("fabric")) {
    fabric = found(name, [&](const std::string& text) { return catalog_.fabric(text); });
  } else if (gpus > in_node && node.fabric) {
    fabric = catalog_.fabric(*node.fabric);
    assume("fabric", fabric->name, "what this server is usually joined by");
  }
  try {
    scenario_.cluster = make_cluster(gpu, node, fabric, gpus, asked_per_node);
  } catch (const InputError& error) {
    throw error.within(request_.place);
  }
  if (!per_node) {
    assume("gpus-per-node", std::to_string(scenario_.cluster.gpus_per_node),
           scenario_.cluster.nodes() > 1 ? "all that this server holds" : "one server is enough");
  }
  if (const Asked given = asked("oversubscription")) {
    const std::string text = given.text().ends_with(":1")
                                 ? given.text().substr(0, given.text().size() - 2)
                                 : given.text();
    double factor = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, factor);
    if (error != std::errc() || stop != end || !(factor >= 1 && factor <= 1000)) {
      given.fail("is not a factor of at least 1", "give 2 or 2:1 for half of the bandwidth");
    }
    scenario_.cluster.oversubscription = factor;
  }
}

void Resolver::precision() {
  const Gpu& gpu = scenario_.cluster.gpu;
  const Asked given = asked("precision");
  if (!given || given.text() == "auto") {
    scenario_.precision = gpu.supports(Precision::bf16)   ? Precision::bf16
                          : gpu.supports(Precision::fp16) ? Precision::fp16
                                                          : Precision::fp32;
    assume("precision", std::string(to_text(scenario_.precision)),
           scenario_.precision == Precision::bf16
               ? "the usual choice where the GPU has it; fp8 only when asked for"
               : "the best that this GPU has for training");
    return;
  }
  scenario_.precision = given.choice<Precision>({{"fp32", Precision::fp32},
                                                 {"tf32", Precision::tf32},
                                                 {"bf16", Precision::bf16},
                                                 {"fp16", Precision::fp16},
                                                 {"fp8", Precision::fp8}});
  try {
    gpu.required_peak(scenario_.precision);
  } catch (const InputError& error) {
    throw error.within(given.place());
  }
}

void Resolver::framework() {
  const Asked given = asked("framework");
  if (!given) assume("framework", "nemo", "the one with most published measurements");
  try {
    scenario_.framework = catalog_.framework(given ? given.text() : "nemo");
  } catch (const InputError& error) {
    throw error.within(request_.place_of("framework"));
  }
  if (const Asked attention = asked("attention")) {
    scenario_.attention = attention.choice<AttentionKernel>(attention_kernels);
  } else {
    scenario_.attention = scenario_.framework.defaults.attention;
    assume("attention", std::string(name_of(scenario_.attention)), habit());
  }
}

void Resolver::power_and_price() {
  const Gpu& gpu = scenario_.cluster.gpu;
  if (const Asked cap = asked("power-cap")) {
    const Watts limit = cap.quantity<Watts>("W");
    const Watts highest = gpu.power.highest.value_or(gpu.power.limit.value());
    const Watts lowest = gpu.power.lowest.value_or(Watts(0));
    if (limit < lowest || limit > highest || limit <= Watts(0)) {
      cap.fail("cannot be set on " + gpu.name,
               fmt::format("its limits are {:.0f} W to {:.0f} W", lowest.value(), highest.value()));
    }
    scenario_.power_cap = limit;
  }
  if (const Asked price = asked("price")) {
    scenario_.gpu_price = price.quantity<DollarsPerSecond>("USD/h");
    if (scenario_.gpu_price->value() * 3600 > max_price) {
      price.fail("is out of range", fmt::format("give at most {:.0f} USD/h", max_price));
    }
  } else if (gpu.price.on_demand.known()) {
    scenario_.gpu_price = gpu.price.on_demand.value();
    assume("price", fmt::format("{:.2f} USD a GPU-hour", scenario_.gpu_price->value() * 3600),
           "on demand, as of " + gpu.price.as_of);
  } else {
    scenario_.warnings.push_back("no price of " + gpu.name +
                                 " is known, so there is no cost; give --price USD");
  }
}

void Resolver::lengths() {
  const Architecture& model = scenario_.model;
  std::int64_t& length = scenario_.strategy.seq_len;
  if (const Asked given = asked("seq-len")) {
    length = given.whole(1, max_tokens_a_sequence);
    if (model.position_rows > 0 && length > model.position_rows) {
      given.fail(fmt::format("is longer than the {} learned positions of {}", model.position_rows,
                             model.name),
                 fmt::format("use at most {}", model.position_rows));
    }
    if (model.max_positions > 0 && length > model.max_positions) {
      scenario_.warnings.push_back(fmt::format("{} was made for sequences of up to {} tokens",
                                               model.name, model.max_positions));
    }
    return;
  }
  length =
      model.max_positions > 0 ? std::min(default_seq_len, model.max_positions) : default_seq_len;
  assume("seq-len", std::to_string(length),
         length < default_seq_len ? "the longest that the model takes" : "a common length");
}

void Resolver::division() {
  Strategy& s = scenario_.strategy;
  const std::string reason = "not divided, unless told so";
  s.equal_chunks = scenario_.framework.defaults.equal_chunks;
  s.tp = whole_or("tp", 1, max_ranks, reason);
  s.pp = whole_or("pp", 1, max_ranks, reason);
  s.cp = whole_or("cp", 1, max_ranks, reason);
  const std::int64_t rest =
      std::max<std::int64_t>(1, scenario_.cluster.gpus / (s.tp * s.pp * s.cp));
  s.dp = whole_or("dp", rest, max_ranks, "gpus / (tp x pp x cp)");
  if (const Asked given = asked("sequence-parallel")) {
    s.sequence_parallel = given.yes();
  } else if (s.tp > 1) {
    s.sequence_parallel = scenario_.framework.defaults.sequence_parallel;
    assume("sequence-parallel", s.sequence_parallel ? "true" : "false", habit());
  }
}

Recompute recompute_of(const Asked& given) {
  return given.choice<Recompute>({{"none", Recompute::none},
                                  {"selective", Recompute::selective},
                                  {"operators", Recompute::operators},
                                  {"full", Recompute::full}});
}

void Resolver::memory_choices() {
  Strategy& s = scenario_.strategy;
  const std::string reason = habit();
  if (const Asked given = asked("zero")) {
    s.zero = static_cast<Zero>(given.whole(0, 3));
  } else {
    s.zero = static_cast<Zero>(scenario_.framework.defaults.zero);
    assume("zero", std::to_string(scenario_.framework.defaults.zero), reason);
  }
  if (const Asked given = asked("shard-ranks")) s.shard_ranks = given.whole(1, max_ranks);

  const Asked given = asked("recompute");
  if (!given) {
    Request own;
    own.values["recompute"] = scenario_.framework.defaults.recompute;
    s.recompute = recompute_of(Asked(own, "recompute"));
    assume("recompute", scenario_.framework.defaults.recompute, reason);
  } else if (given.text().starts_with("full:")) {
    Request count = request_;
    count.values["recompute"] = given.text().substr(5);
    s.recompute = Recompute::full;
    s.recompute_share =
        static_cast<double>(Asked(count, "recompute").whole(1, scenario_.model.layers)) /
        static_cast<double>(scenario_.model.layers);
  } else {
    s.recompute = recompute_of(given);
  }
}

void Resolver::batch() {
  Strategy& s = scenario_.strategy;
  s.micro_batch = whole_or("micro-batch", 1, 1 << 14, "the least memory");
  if (const Asked given = asked("global-batch")) {
    s.global_batch = given.whole(1, max_batch);
  } else {
    // Whole rounds of micro-batches over the data-parallel ranks, and over the stages, since an
    // interleaved pipeline needs that.
    const std::int64_t round = s.dp * s.micro_batch * s.pp;
    s.global_batch = std::max<std::int64_t>(1, default_step_tokens / s.seq_len / round) * round;
    assume("global-batch", std::to_string(s.global_batch),
           fmt::format("{:.3g} Mi tokens a step", static_cast<double>(s.global_batch) *
                                                      static_cast<double>(s.seq_len) / (1 << 20)));
  }
  if (s.micro_batch * s.seq_len > (std::int64_t{1} << 28)) {
    throw InputError("a micro-batch of more than 268435456 tokens",
                     fmt::format("{} sequences of {}", s.micro_batch, s.seq_len), "make it smaller",
                     request_.place_of("micro-batch"));
  }
}

// Chunks of layers a stage that the framework's users choose: the most that divide the layers
// evenly (embedding and head counted where that needs them) and keep `layers_per_chunk`, where the
// micro-batches allow interleaving.
std::int64_t Resolver::usual_chunks() const {
  const Strategy& s = scenario_.strategy;
  const std::int64_t least = scenario_.framework.defaults.layers_per_chunk;
  if (s.pp == 1 || least == 0 || s.micro_batches() % s.pp != 0) return 1;
  const std::int64_t layers = scenario_.model.layers;
  std::int64_t chunks = 1;
  for (std::int64_t vpp = 2; s.pp * vpp * least <= layers + 2; ++vpp) {
    const std::int64_t places = layers % (s.pp * vpp) == 0 ? layers : layers + 2;
    if (layers_fit(layers, s.pp, vpp) && s.pp * vpp * least <= places) chunks = vpp;
  }
  return chunks;
}

void Resolver::schedule() {
  Strategy& s = scenario_.strategy;
  const Asked chunks = asked("vpp");
  const Asked order = asked("schedule");
  if (order) {
    s.schedule = order.choice<Schedule>({{"gpipe", Schedule::gpipe},
                                         {"1f1b", Schedule::one_f_one_b},
                                         {"interleaved", Schedule::interleaved}});
  }
  if (chunks) {
    s.vpp = chunks.whole(1, 1024);
  } else {
    s.vpp = order && s.schedule != Schedule::interleaved ? 1 : usual_chunks();
    assume("vpp", std::to_string(s.vpp), s.vpp > 1 ? habit() : "one chunk of layers a stage");
  }
  if (!order) {
    s.schedule = s.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
    if (s.pp > 1) {
      assume("schedule", std::string(name_of(s.schedule)),
             s.vpp > 1 ? "several chunks a stage" : "the usual one");
    }
  }
}

void Resolver::run_length() {
  const Asked given = asked("tokens");
  if (!given) return;
  double value = 0;
  const std::string& text = given.text();
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(stop, text.data() + text.size());
  const double scale = suffix == ""    ? 1
                       : suffix == "K" ? 1e3
                       : suffix == "M" ? 1e6
                       : suffix == "B" ? 1e9
                       : suffix == "T" ? 1e12
                                       : 0;
  const double tokens = value * scale;
  if (error != std::errc() || !(tokens >= 1 && tokens <= 1e18)) {
    given.fail("is not a number of tokens", "give one such as 300B, 15T or 2e12");
  }
  scenario_.tokens = Tokens(tokens);
}

void Resolver::convention() {
  const Asked given = asked("convention");
  if (!given) {
    scenario_.convention = FlopConvention::full_attention;
    assume("convention", std::string(name_of(scenario_.convention)),
           "as Megatron and PaLM count model FLOPs");
    return;
  }
  try {
    scenario_.convention = flop_convention(given.text());
  } catch (const InputError& error) {
    throw error.within(given.place());
  }
}

Scenario Resolver::run() {
  refuse_unknown_keys();
  refuse_unmodelled();
  model();
  machine();
  scenario_.rates = catalog_.kernel_rates(scenario_.cluster.gpu.architecture);
  precision();
  framework();
  power_and_price();
  lengths();
  division();
  memory_choices();
  batch();
  schedule();
  run_length();
  convention();
  return std::move(scenario_);
}

}  // namespace

Scenario resolve(const Request& request, const Catalog& catalog) {
  return Resolver(request, catalog).run();
}

}  // namespace orrery

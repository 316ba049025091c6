#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "catalog/named_model.h"
#include "core/error.h"
#include "core/text.h"
#include "twin/resolver.h"

namespace orrery {
namespace {

constexpr std::int64_t max_tokens_a_sequence = 1 << 24;
constexpr std::int64_t default_seq_len = 4096;

const Choices<AttentionKernel> attention_kernels = {{"flash", AttentionKernel::flash},
                                                    {"early-flash", AttentionKernel::early_flash},
                                                    {"unfused", AttentionKernel::unfused}};

std::string_view name_of(AttentionKernel kernel) {
  for (const auto& [name, value] : attention_kernels) {
    if (value == kernel) return name;
  }
  return "";
}

}  // namespace

std::optional<Tokens> token_count(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(stop, text.data() + text.size());
  const double scale = suffix == ""    ? 1
                       : suffix == "K" ? 1e3
                       : suffix == "M" ? 1e6
                       : suffix == "B" ? 1e9
                       : suffix == "T" ? 1e12
                                       : 0;
  const double tokens = value * scale;
  if (error != std::errc() || !(tokens >= 1 && tokens <= 1e18)) return std::nullopt;
  return Tokens(tokens);
}

std::int64_t Resolver::whole_or(const std::string& key, std::int64_t fallback, std::int64_t high,
                                const std::string& reason) {
  if (const Asked given = asked(key)) return given.whole(1, high);
  assume(key, std::to_string(fallback), reason);
  return fallback;
}

void Resolver::refuse(const std::string& key, const std::string& rule,
                      const std::string& mend) const {
  if (const Asked given = asked(key)) given.fail(rule, mend);
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
  try {
    scenario_.model = named_model(catalog_, name.text());
  } catch (const InputError& error) {
    throw error.within(name.place());
  }
  if (const std::string why = unlowered(scenario_.model); !why.empty()) {
    name.fail("cannot be predicted: " + why, "orrery catalog models lists those that can");
  }
  for (const std::string& fact : scenario_.model.defaults) {
    assume("model", fact, "the configuration leaves it to its family's code");
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

void Resolver::run_length() {
  const Asked given = asked("tokens");
  if (!given) return;
  scenario_.tokens = token_count(given.text());
  if (!scenario_.tokens) {
    given.fail("is not a number of tokens", "give one such as 300B, 15T or 2e12");
  }
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
  model();
  machine();
  precision();
  framework();
  power_and_price();
  scenario_.kernels = job_kernels(catalog_, scenario_.cluster.gpu, scenario_.power_cap);
  lengths();
  job();
  strategy();
  run_length();
  convention();
  return std::move(scenario_);
}

Scenario resolve(const Request& request, const Catalog& catalog) {
  return Resolver(request, catalog).run();
}

}  // namespace orrery

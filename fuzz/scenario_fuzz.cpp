// Any scenario file, and the same lines as flags, are refused with an InputError or have an answer.
#include <cmath>
#include <cstdint>

#include "cli/command.h"
#include "core/error.h"
#include "core/yaml.h"
#include "twin/twin.h"

namespace {

using namespace orrery;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

// So that a run stays short: the rest is tested by hand.
bool is_small(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  return s.pp * s.vpp <= 16 && s.micro_batches() <= 64 && scenario.model.layers <= 128;
}

void answer(const Request& request) {
  const auto model = request.values.find("model");
  if (model != request.values.end()) {
    const std::string& name = model->second;  // a path is a file of this machine
    if (name.find('/') != std::string::npos || name.ends_with(".json")) return;
  }
  const Scenario scenario = resolve(request, catalog());
  if (!is_small(scenario)) return;
  const Answer answer = predict(scenario);
  ENSURE(answer.feasible || !answer.reason.empty());
  if (answer.priced) {
    ENSURE(answer.step > Seconds() && std::isfinite(answer.step.value()));
    ENSURE(answer.needed() > Bytes() && std::isfinite(answer.needed().value()));
    ENSURE(std::isfinite(answer.gpu_power.value()));
  }
  ENSURE(!to_json(scenario, answer).dump().empty());
}

// "tp: 2" as "--tp=2".
std::vector<std::string> flags_of(std::string_view text) {
  std::vector<std::string> words = {"predict"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string flag = "--" + std::string(text.substr(0, end));
    if (const std::size_t colon = flag.find(": "); colon != std::string::npos) {
      flag.replace(colon, 2, "=");
    }
    words.push_back(std::move(flag));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    answer(request_from_json(parse_yaml(text, "fuzz"), "fuzz"));
  } catch (const InputError&) {
  }
  try {
    const cli::Parsed parsed = cli::parse(flags_of(text));
    if (parsed.verb && parsed.command.arguments.empty()) answer(parsed.command.request);
  } catch (const InputError&) {
  }
  return 0;
}

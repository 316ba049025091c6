#include "report/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <system_error>

#include "cli/command.h"
#include "cli/kernel_questions.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "tables/operators.h"
#include "twin/asked.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 31;
constexpr std::size_t most_points = 100'000;

// Of the operator, of every operator, and of the verb alone.
constexpr std::array common_flags = {"gpu", "library", "power-cap", "sweep", "out"};

Request request_of(const Command& command, const KernelOp& op) {
  Request request;
  request.place = command_line;
  for (const auto& [flag, value] : command.options) {
    if (std::ranges::count(common_flags, flag) == 0 && std::ranges::count(op.flags, flag) == 0) {
      throw InputError(
          std::string(op.name) + " has no such flag", "",
          "it takes --" + join(std::vector<std::string>(op.flags.begin(), op.flags.end()), ", --"),
          "--" + flag);
    }
    request.values[flag] = value;
  }
  return request;
}

Gpu gpu_of(const Request& request, const Catalog& catalog) {
  const Asked name(request, "gpu");
  if (!name) throw InputError("no GPU is given", "", "add --gpu NAME, such as --gpu h100-sxm");
  try {
    return catalog.gpu(name.text());
  } catch (const InputError& error) {
    throw error.within(name.place());
  }
}

Watts limit_of(const Request& request, const Gpu& gpu) {
  const Asked cap(request, "power-cap");
  if (!cap) return gpu.power.limit.value();
  const Watts limit = cap.quantity<Watts>("W");
  const Watts highest = gpu.power.highest.value_or(gpu.power.limit.value());
  const Watts lowest = gpu.power.lowest.value_or(Watts(0));
  if (limit < lowest || limit > highest || limit <= Watts(0)) {
    cap.fail("cannot be set on " + gpu.name,
             fmt::format("its limits are {:.0f} W to {:.0f} W", lowest.value(), highest.value()));
  }
  return limit;
}

std::string library_of(const Request& request, const KernelSets& sets, const std::string& op) {
  const Asked asked(request, "library");
  if (!asked) return "";
  std::vector<std::string> names;
  for (const KernelSet& set : sets.all()) {
    if (set.op == op && std::ranges::count(names, set.library) == 0) names.push_back(set.library);
  }
  if (std::ranges::count(names, asked.text()) > 0) return asked.text();
  asked.fail("has no parameters for this operator", "the libraries are " + join(names));
}

// Of the first variant that has one for the GPU's architecture, else of the first that has any.
FoundSet closest_set(const KernelSets& sets, const KernelQuestion& question,
                     const std::string& library, const Gpu& gpu) {
  FoundSet best;
  for (const std::string& variant : question.variants) {
    FoundSet found = sets.find(question.op, variant, library, gpu);
    if (!found.set) continue;
    found.own_library = found.own_library || library.empty();
    if (found.set->architecture == gpu.architecture) return found;
    if (!best.set) best = found;
  }
  if (!best.set) {
    throw InputError("no parameters of " + question.op + " " + question.variants.front(), "",
                     "see orrery fit --help");
  }
  return best;
}

// All that an answer needs and a sweep does not change.
struct Bench {
  const KernelOp& op;
  Machine machine;
  std::vector<KernelEvidence> evidence;
};

// As published; of the boost clock where nothing is.
FlopPerSecond peak_of(const Machine& machine, Precision unit) {
  const auto& published = machine.gpu.peaks[static_cast<std::size_t>(unit)];
  return published ? published->value() : machine.device.peak(unit);
}

// Bytes on a rank's links over the size, as nccl-tests count the bus bandwidth.
double bus_factor(const CollectiveShape& shape) {
  const auto ranks = static_cast<double>(shape.ranks);
  switch (shape.op) {
    case NcclOp::all_reduce:
      return 2 * (ranks - 1) / ranks;
    case NcclOp::broadcast:
    case NcclOp::send_recv:
      return 1;
    default:
      return (ranks - 1) / ranks;
  }
}

void measure(const KernelShape& asked, const Device& device, KernelAnswer& answer) {
  const KernelSet& set = *answer.found.set;
  if (const auto* gemm = std::get_if<GemmShape>(&asked)) {
    const GemmTime time = gemm_time(*gemm, parameters_from<GemmParameters>(set), device);
    answer.time = time;
    answer.tiles = {time.tile_m, time.tile_n, time.splits, time.ctas, device.sms};
  } else if (const auto* collective = std::get_if<CollectiveShape>(&asked)) {
    const auto parameters = parameters_from<CollectiveParameters>(set);
    const CollectiveTime time = collective_time(*collective, parameters, device);
    answer.time = time;
    answer.links = {std::string(to_text(time.protocol)), collective->size / time.time,
                    bus_factor(*collective)};
    answer.far = time.extrapolated;
  } else {
    answer.time = operator_named(set.op)->time(asked, set, device);
  }
}

KernelAnswer answer_of(const Request& request, const Bench& bench) {
  const Gpu& gpu = bench.machine.gpu;
  const KernelSets& sets = bench.machine.catalog.kernel_sets();
  KernelQuestion question = bench.op.ask(request, bench.machine, bench.op.name);
  KernelAnswer answer;
  answer.op = bench.op.name;
  for (const std::string_view flag : bench.op.flags) {
    const auto given = request.values.find(std::string(flag));
    if (given != request.values.end()) answer.shape.emplace_back(flag, given->second);
  }
  answer.gpu = gpu.name;
  answer.limit = bench.machine.device.limit;
  answer.unit = question.unit;
  answer.peak = peak_of(bench.machine, question.unit);
  answer.bandwidth = bench.machine.device.memory;
  answer.variant = question.variants.front();
  answer.found = closest_set(sets, question, library_of(request, sets, question.op), gpu);
  answer.warning = settle(question.shape, answer.found.set->library, gpu);
  measure(question.shape, bench.machine.device, answer);
  answer.record = record_of(bench.evidence, answer.found, answer.time);
  return answer;
}

// "m=1..32768" doubles, "m=64..4096:64" adds; the last value is always there.
struct Sweep {
  std::string flag;
  std::vector<std::int64_t> values;
};

std::int64_t whole_in(std::string_view text, const Asked& sweep) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > longest) {
    sweep.fail("is no sweep", "write m=1..32768, or m=64..4096:64; values are 1 to 2147483648");
  }
  return value;
}

Sweep sweep_of(const Asked& asked, const KernelOp& op) {
  const std::string_view text = asked.text();
  const std::size_t equals = text.find('='), dots = text.find("..");
  if (equals == std::string_view::npos || dots == std::string_view::npos || dots < equals) {
    asked.fail("is no sweep", "write m=1..32768, or m=64..4096:64");
  }
  Sweep sweep;
  sweep.flag = text.substr(0, equals);
  if (std::ranges::count(op.flags, sweep.flag) == 0) {
    asked.fail("sweeps no flag of " + std::string(op.name),
               "it takes " + join(std::vector<std::string>(op.flags.begin(), op.flags.end())));
  }
  const std::string_view end = text.substr(dots + 2);
  const std::size_t colon = end.find(':');
  const std::int64_t low = whole_in(text.substr(equals + 1, dots - equals - 1), asked);
  const std::int64_t high = whole_in(end.substr(0, colon), asked);
  const std::int64_t step =
      colon == std::string_view::npos ? 0 : whole_in(end.substr(colon + 1), asked);
  if (low > high) asked.fail("ends before it starts", "write the lower end first");
  if (step > 0 && static_cast<std::size_t>((high - low) / step) >= most_points) {
    asked.fail("has too many points", "at most " + std::to_string(most_points));
  }
  for (std::int64_t value = low; value<high; value += step> 0 ? step : value) {
    sweep.values.push_back(value);
  }
  sweep.values.push_back(high);
  return sweep;
}

Reply said(const Request& request, std::string text) {
  const Asked out(request, "out");
  if (!out) return {answered, std::move(text)};
  write_text_atomically(out.text(), text);
  return {answered, ""};
}

Reply swept(const Command& command, Request request, const Bench& bench, const Asked& asked) {
  const Sweep sweep = sweep_of(asked, bench.op);
  std::vector<KernelAnswer> answers;
  for (const std::int64_t value : sweep.values) {
    request.values[sweep.flag] = std::to_string(value);
    answers.push_back(answer_of(request, bench));
  }
  if (!command.json) return said(request, kernel_csv(sweep.flag, answers));
  Json points = Json::array();
  for (const KernelAnswer& answer : answers) points.push_back(kernel_json(answer, command.explain));
  const Json json =
      Json::object({{"schema_version", 1}, {"swept", sweep.flag}, {"points", std::move(points)}});
  return said(request, json.dump(2) + "\n");
}

}  // namespace

Reply kernel_verb(const Command& command) {
  if (command.arguments.size() != 1) {
    throw InputError(command.arguments.empty()
                         ? "no operator is given"
                         : "unexpected argument " + in_quotes(command.arguments[1]),
                     "", "usage: orrery kernel OP --gpu NAME [flags]");
  }
  const KernelOp& op = kernel_op_named(command.arguments.front());
  const Request request = request_of(command, op);
  const std::string data = default_data_dir();
  const Catalog catalog = Catalog::load(data);
  const Gpu gpu = gpu_of(request, catalog);
  const Bench bench = {.op = op,
                       .machine = {catalog, gpu, device_of(gpu, limit_of(request, gpu))},
                       .evidence = load_kernel_evidence(data)};
  if (const Asked sweep{request, "sweep"}) return swept(command, request, bench, sweep);
  const KernelAnswer answer = answer_of(request, bench);
  if (command.json) {
    Json json = kernel_json(answer, command.explain);
    json.set("schema_version", 1);
    return said(request, json.dump(2) + "\n");
  }
  std::ostringstream out;
  print_kernel(out, answer, command.style, command.explain);
  return said(request, out.str());
}

}  // namespace orrery::cli

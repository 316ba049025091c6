#include "report/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tables/operators.h"
#include "units/text.h"

namespace orrery {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string title(const KernelAnswer& answer) {
  std::string text = answer.op;
  for (const auto& [flag, value] : answer.shape) text += fmt::format(" {} {}", flag, value);
  return text + fmt::format(" on {} at {:.0f} W", answer.gpu, answer.limit.value());
}

std::string_view bound_text(Bound bound) {
  switch (bound) {
    case Bound::latency:
      return "its start: too little work to fill the GPU";
    case Bound::compute:
      return "arithmetic";
    case Bound::feed:
      return "what the SMs can take in and hand on";
    case Bound::memory:
      return "memory bandwidth";
    case Bound::power:
      return "the power limit";
    case Bound::links:
      return "the links";
  }
  return "";
}

bool is_extrapolated(const KernelAnswer& answer) {
  return !answer.found.own_gpu || !answer.found.own_library ||
         answer.found.set->variant != answer.variant || answer.far || answer.record.extrapolated;
}

std::string set_text(const KernelAnswer& answer) {
  const KernelSet& set = *answer.found.set;
  return fmt::format("{} {} of {} on {}", set.op, set.variant, set.library, set.gpu);
}

std::string fit_text(const KernelSet& set) {
  if (set.seen.n == 0) return set.note;
  std::string text = fmt::format("off by {} in the median of {} rows that the fit saw",
                                 percent(set.seen.median), set.seen.n);
  if (set.unseen.n == 0) return text;
  return text + fmt::format(", {} of {} others", percent(set.unseen.median), set.unseen.n);
}

// What the answer is stretched over.
std::string stretch_text(const KernelAnswer& answer) {
  const KernelSet& set = *answer.found.set;
  std::string text = "extrapolated:";
  if (set.variant != answer.variant) text += fmt::format(" nobody timed {};", answer.variant);
  if (!answer.found.own_gpu) text += fmt::format(" timed on {}, not {};", set.gpu, answer.gpu);
  if (!answer.found.own_library) text += " of another library;";
  if (text.ends_with(":") && answer.record.n == 0) text += " its predictions have no record yet;";
  if (text.ends_with(":")) text += " far from every published row;";
  text.pop_back();
  return text;
}

// One bar a wave, as full as it fills the SMs; of many waves the last three.
std::string wave_bars(const KernelTiles& tiles) {
  constexpr double shown = 8;
  const double waves = tiles.whole_waves();
  std::string text = waves > shown ? fmt::format("{} full, then ", grouped(waves - 3)) : "";
  for (double wave = std::min(waves, waves > shown ? 3 : shown); wave > 1; --wave) {
    text += bar(1, 8) + " ";
  }
  return text + bar(tiles.last_wave(), 8);
}

void add_rates(Table& table, const KernelAnswer& answer) {
  if (answer.time.flop > Flop(0)) {
    table.rows.push_back(
        {"arithmetic", fmt::format("{}, {} of the {} of {} units", to_text(answer.rate()),
                                   percent(answer.rate() / answer.peak), to_text(answer.peak),
                                   to_text(answer.unit))});
  }
  if (answer.time.bytes <= Bytes(0)) return;
  table.rows.push_back(
      {"memory",
       fmt::format("{} moved, {}, {} of {}", to_text(answer.time.bytes), to_text(answer.traffic()),
                   percent(answer.traffic() / answer.bandwidth), to_text(answer.bandwidth))});
  if (answer.time.flop <= Flop(0)) return;
  table.rows.push_back(
      {"roofline", fmt::format("{}, ridge at {}: at most {}", to_text(answer.intensity()),
                               to_text(answer.ridge()), to_text(answer.attainable()))});
}

void add_tiles(Table& table, const KernelAnswer& answer) {
  if (!answer.tiles) return;
  const KernelTiles& t = *answer.tiles;
  std::string text = fmt::format("{} x {}", t.tile_m, t.tile_n);
  if (t.splits > 1) text += fmt::format(", k in {} parts", t.splits);
  text += fmt::format(": {} CTAs on {:.0f} SMs, {} {}, the last {} full", grouped(t.ctas), t.sms,
                      grouped(t.whole_waves()), t.whole_waves() > 1 ? "waves" : "wave",
                      percent(t.last_wave()));
  table.rows.push_back({"tiles", text});
  table.rows.push_back({"", wave_bars(t)});
}

Table parts_table(const KernelAnswer& answer) {
  const KernelTime& t = answer.time;
  return {.columns = {{"alone"}, {"", Align::right}},
          .rows = {{"start", to_text(t.start)},
                   {"arithmetic", to_text(t.compute)},
                   {"feeding the SMs", to_text(t.feed)},
                   {"memory", to_text(t.memory)}},
          .indent = "  "};
}

std::string_view meaning(const KernelSet& set, std::string_view parameter) {
  const Operator* model = operator_named(set.op);
  if (!model) return "";
  const auto found = std::ranges::find(model->parameters, parameter, &ParameterInfo::name);
  return found == model->parameters.end() ? "" : found->meaning;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

Table parameter_table(const KernelSet& set) {
  Table table{
      .columns = {{"parameter"}, {"value", Align::right}, {"meaning"}}, .rows = {}, .indent = "  "};
  for (const auto& [name, value] : set.values) {
    table.rows.push_back({name, value_text(value), std::string(meaning(set, name))});
  }
  return table;
}

Json errors_json(const FitErrors& errors) {
  return Json::object({{"n", errors.n}, {"median", errors.median}, {"p90", errors.p90}});
}

Json parameters_json(const KernelAnswer& answer, bool explain) {
  const KernelSet& set = *answer.found.set;
  Json json = Json::object({{"op", set.op},
                            {"variant", set.variant},
                            {"library", set.library},
                            {"gpu", set.gpu},
                            {"seen", errors_json(set.seen)},
                            {"unseen", errors_json(set.unseen)},
                            {"note", set.note}});
  if (!explain) return json;
  Json list = Json::array();
  for (const auto& [name, value] : set.values) {
    list.push_back(
        Json::object({{"name", name}, {"value", value}, {"meaning", meaning(set, name)}}));
  }
  json.set("values", std::move(list));
  return json;
}

Json tiles_json(const KernelTiles& t) {
  return Json::object({{"tile_m", t.tile_m},
                       {"tile_n", t.tile_n},
                       {"splits", t.splits},
                       {"ctas", t.ctas},
                       {"waves", t.whole_waves()},
                       {"last_wave", t.last_wave()}});
}

Json links_json(const KernelLinks& links) {
  return Json::object({{"protocol", links.protocol},
                       {"size_bytes_per_s", links.size_rate.value()},
                       {"bus_bytes_per_s", links.bus().value()}});
}

}  // namespace

double KernelTiles::whole_waves() const { return std::max(1.0, std::ceil(ctas / sms)); }
double KernelTiles::last_wave() const { return ctas / sms - (whole_waves() - 1); }

FlopPerSecond KernelAnswer::attainable() const {
  return time.bytes > Bytes(0) ? std::min(peak, intensity() * bandwidth) : peak;
}

void print_kernel(std::ostream& out, const KernelAnswer& answer, const Style& style, bool explain) {
  const KernelTime& t = answer.time;
  out << style.bold(title(answer)) << "\n\n";
  Table table{.columns = {{""}, {""}}, .rows = {}, .indent = "  "};
  table.rows.push_back(
      {"time", fmt::format("{}; four of five measured would lie within {} and {}", to_text(t.time),
                           to_text(answer.record.low), to_text(answer.record.high))});
  table.rows.push_back({"bound by", std::string(bound_text(t.bound))});
  table.rows.push_back({"clock", fmt::format("{:.0f} MHz", t.clock.value() / 1e6)});
  table.rows.push_back(
      {"power", fmt::format("{:.0f} W, {} each", t.power.value(), to_text(answer.energy()))});
  add_rates(table, answer);
  add_tiles(table, answer);
  if (answer.links) {
    table.rows.push_back(
        {"links", fmt::format("{} by {}; {} on the bus", to_text(answer.links->size_rate),
                              answer.links->protocol, to_text(answer.links->bus()))});
  }
  table.rows.push_back({"parameters", set_text(answer)});
  if (const std::string fit = fit_text(*answer.found.set); !fit.empty()) {
    table.rows.push_back({"", fit});
  }
  if (is_extrapolated(answer)) table.rows.push_back({"", stretch_text(answer)});
  if (!answer.record.nearest.empty()) {
    table.rows.push_back({"nearest row", answer.record.nearest});
  }
  if (!answer.warning.empty()) table.rows.push_back({"warning", answer.warning});
  print_table(out, table, style);
  if (!explain) return;
  out << '\n';
  print_table(out, parts_table(answer), style);
  out << '\n';
  print_table(out, parameter_table(*answer.found.set), style);
}

Json kernel_json(const KernelAnswer& answer, bool explain) {
  const KernelTime& t = answer.time;
  Json shape = Json::object();
  for (const auto& [flag, value] : answer.shape) shape.set(flag, value);
  const bool works = t.flop > Flop(0), moves = t.bytes > Bytes(0);
  Json roofline = Json();
  if (works && moves) {
    roofline = Json::object({{"flop_per_byte", answer.intensity().value()},
                             {"ridge_flop_per_byte", answer.ridge().value()},
                             {"attainable_flops", answer.attainable().value()}});
  }
  return Json::object({{"op", answer.op},
                       {"shape", std::move(shape)},
                       {"gpu", answer.gpu},
                       {"limit_w", answer.limit.value()},
                       {"time_s", t.time.value()},
                       {"low_s", answer.record.low.value()},
                       {"high_s", answer.record.high.value()},
                       {"bound", to_text(t.bound)},
                       {"clock_hz", t.clock.value()},
                       {"power_w", t.power.value()},
                       {"energy_j", answer.energy().value()},
                       {"flop", t.flop.value()},
                       {"bytes", t.bytes.value()},
                       {"flops", answer.rate().value()},
                       {"bytes_per_s", answer.traffic().value()},
                       {"unit", to_text(answer.unit)},
                       {"peak_share", answer.rate() / answer.peak},
                       {"bandwidth_share", answer.traffic() / answer.bandwidth},
                       {"roofline", std::move(roofline)},
                       {"parts", Json::object({{"start_s", t.start.value()},
                                               {"compute_s", t.compute.value()},
                                               {"feed_s", t.feed.value()},
                                               {"memory_s", t.memory.value()}})},
                       {"tiles", answer.tiles ? tiles_json(*answer.tiles) : Json()},
                       {"links", answer.links ? links_json(*answer.links) : Json()},
                       {"warning", answer.warning},
                       {"parameters", parameters_json(answer, explain)},
                       {"extrapolated", is_extrapolated(answer)},
                       {"nearest", answer.record.nearest}});
}

std::string kernel_csv(std::string_view swept, std::span<const KernelAnswer> answers) {
  std::string text = fmt::format(
      "{},time_us,low_us,high_us,bound,clock_mhz,power_w,energy_j,tflops,peak_share,gbps,tile_m,"
      "tile_n,splits,ctas,waves\n",
      swept);
  for (const KernelAnswer& a : answers) {
    const auto value = std::ranges::find(
        a.shape, swept, [](const auto& pair) { return std::string_view(pair.first); });
    text +=
        fmt::format("{},{:.6g},{:.6g},{:.6g},{},{:.0f},{:.1f},{:.4g},{:.5g},{:.4f},{:.5g}",
                    value == a.shape.end() ? "" : value->second, a.time.time.value() * 1e6,
                    a.record.low.value() * 1e6, a.record.high.value() * 1e6, to_text(a.time.bound),
                    a.time.clock.value() / 1e6, a.time.power.value(), a.energy().value(),
                    a.rate().value() / 1e12, a.rate() / a.peak, a.traffic().value() / 1e9);
    text += a.tiles ? fmt::format(",{},{},{},{:.0f},{:.0f}\n", a.tiles->tile_m, a.tiles->tile_n,
                                  a.tiles->splits, a.tiles->ctas, a.tiles->whole_waves())
                    : ",,,,,\n";
  }
  return text;
}

}  // namespace orrery

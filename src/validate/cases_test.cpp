// Questions that users asked in public and whose answers are known: data/measurements/cases.csv.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "catalog/catalog.h"
#include "core/csv.h"
#include "core/file.h"
#include "cost/collective.h"
#include "model/count.h"
#include "twin/deepspeed_estimate.h"
#include "twin/twin.h"

namespace orrery {
namespace {

using Values = std::map<std::string, std::string>;

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

const CsvTable& table() {
  static const CsvTable read = [] {
    const std::string path = default_data_dir() + "/measurements/cases.csv";
    return parse_csv(read_text(path, kMaxCsvBytes), path);
  }();
  return read;
}

const std::string& cell(const CsvRow& row, std::string_view column) {
  return row.cells.at(table().column(column).value());
}

// "key=value key=value"
Values values_of(const std::string& text, Values values = {}) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return values;
}

double gib(Bytes size) { return size.value() / std::pow(2.0, 30); }

// --- of a model, a GPU or an estimator ----------------------------------------------------------

std::int64_t whole(const Values& asked, const std::string& key) {
  return std::stoll(asked.at(key));
}

Architecture model(const Values& asked) { return catalog().model(asked.at("model")); }

double flop_a_token(const Values& asked) {
  return flop_per_token(model(asked), whole(asked, "seq-len"),
                        flop_convention(asked.at("convention")))
      .value();
}

double dense_tflops(const Values& asked) {
  return catalog().gpu(asked.at("gpu")).required_peak(Precision::bf16).value() / 1e12;
}

double tflops_of_rate(const Values& asked) {
  return flop_a_token(asked) * std::stod(asked.at("rate")) / 1e12;
}

double unwindowed_kv_gib(const Values& asked) {
  return gib(kv_bytes_per_token(model(asked), Precision::bf16)) * std::stod(asked.at("seq-len")) /
         std::stod(asked.at("tp"));
}

DeepspeedEstimate estimate(const Values& asked) {
  const auto offload = asked.find("offload");
  const std::string where = offload == asked.end() ? "none" : offload->second;
  return deepspeed_estimate(whole(asked, "parameters"), whole(asked, "largest"),
                            whole(asked, "gpus"), 1,
                            where == "none"        ? Offload::none
                            : where == "optimizer" ? Offload::optimizer
                                                   : Offload::parameters);
}

Network network(const Values& asked) {
  Network made =
      network_of(make_cluster(catalog().gpu(asked.at("gpu")), catalog().node(asked.at("node")),
                              catalog().fabric(asked.at("fabric")), whole(asked, "gpus")));
  if (asked.contains("nvls")) made.in_switch_reduction = asked.at("nvls") == "true";
  return made;
}

// GB/s of an all-reduce of 16 GiB as nccl-tests print it: 2 (n - 1) / n of the size over the time.
double bus_bandwidth(const Values& asked) {
  const std::int64_t gpus = whole(asked, "gpus");
  const Bytes size(std::pow(2.0, 34));
  const Seconds time =
      collective_time({CollectiveOp::all_reduce, GroupKind::data, {gpus, 1}, size, Precision::fp32},
                      network(asked));
  const auto n = static_cast<double>(gpus);
  return 2 * (n - 1) / n * (size / time).value() / 1e9;
}

double nic_bandwidth(const Values& asked) {
  const Network made = network(asked);
  return made.inter.value() * made.inter_efficiency / 1e9;
}

const std::map<std::string, std::function<double(const Values&)>>& simple_quantities() {
  static const std::map<std::string, std::function<double(const Values&)>> all = {
      {"flop_per_token", flop_a_token},
      {"dense_tflops", dense_tflops},
      {"tflops_of_rate", tflops_of_rate},
      {"mfu_of_rate", [](const Values& v) { return 100 * tflops_of_rate(v) / dense_tflops(v); }},
      {"kv_bytes_per_token",
       [](const Values& v) { return kv_bytes_per_token(model(v), Precision::bf16).value(); }},
      {"kv_gib_unwindowed", unwindowed_kv_gib},
      {"kv_gib",
       [](const Values& v) {
         return gib(kv_bytes(model(v), whole(v, "seq-len"), Precision::bf16)) /
                std::stod(v.at("tp"));
       }},
      {"memory_bandwidth",
       [](const Values& v) {
         return catalog().gpu(v.at("gpu")).memory.bandwidth.value().value() / 1e12;
       }},
      {"estimator_gpu_gib", [](const Values& v) { return gib(estimate(v).gpu); }},
      {"estimator_host_gib", [](const Values& v) { return gib(estimate(v).host); }},
      {"bus_bandwidth", bus_bandwidth},
      {"nic_bandwidth", nic_bandwidth},
  };
  return all;
}

// --- of a whole job -----------------------------------------------------------------------------

Bytes held(const Answer& answer, MemoryTerm term) {
  return answer.memory.footprint[static_cast<std::size_t>(term)];
}

Bytes states(const Answer& answer) {
  return held(answer, MemoryTerm::weights) + held(answer, MemoryTerm::gradients) +
         held(answer, MemoryTerm::optimizer);
}

double fp32_logits(const Scenario& s) {
  return 4.0 * static_cast<double>(padded_vocab(s) / s.strategy.tp * s.strategy.micro_batch *
                                   s.strategy.seq_len);
}

double of_job(const std::string& quantity, const Scenario& scenario) {
  const Answer answer = price_scenario(scenario);
  EXPECT_TRUE(answer.priced) << answer.reason;
  if (quantity == "fits") return answer.feasible;
  if (quantity == "peak_gib") return gib(answer.needed());
  if (quantity == "peak_gb") return answer.needed().value() / 1e9;
  if (quantity == "states_gib") return gib(states(answer));
  if (quantity == "communication_gib") return gib(held(answer, MemoryTerm::communication));
  if (quantity == "tokens_per_s_per_gpu") return answer.tokens_per_s_per_gpu;
  if (quantity == "step_s") return answer.step.value();
  if (quantity == "model_tflops") return answer.model_flops_per_gpu / 1e12;
  if (quantity == "mfu") return 100 * answer.mfu;
  if (quantity == "hfu_over_mfu") return answer.hfu / answer.mfu;
  if (quantity == "padded_vocab") return static_cast<double>(padded_vocab(scenario));
  if (quantity == "fp32_logits") return fp32_logits(scenario);
  if (quantity == "fp32_logits_mib") return fp32_logits(scenario) / std::pow(2.0, 20);
  ADD_FAILURE() << "no quantity " << quantity;
  return std::nan("");
}

Scenario scenario_of(Values asked) {
  Request request{.values = {}, .architecture = {}, .place = "cases.csv"};
  // llm-foundry allocates the learned positions of each run's max_seq_len.
  if (const auto positions = asked.find("positions"); positions != asked.end()) {
    request.architecture = model(asked);
    request.architecture->position_rows = std::stoll(positions->second);
    request.architecture->max_positions = request.architecture->position_rows;
    asked.erase("positions");
  }
  request.values = std::move(asked);
  return resolve(request, catalog());
}

double measure(const std::string& quantity, const Values& asked) {
  const auto simple = simple_quantities().find(quantity);
  return simple != simple_quantities().end() ? simple->second(asked)
                                             : of_job(quantity, scenario_of(asked));
}

double predicted(const CsvRow& row) {
  const Values asked = values_of(cell(row, "request"));
  const double value = measure(cell(row, "quantity"), asked);
  const std::string& by = cell(row, "by");
  if (by.empty()) return value;
  const double other = measure(cell(row, "quantity"), values_of(cell(row, "against"), asked));
  return by == "ratio" ? value / other : value - other;
}

// "exact", "abs 0.5", or a share of the expected value.
double allowed(const CsvRow& row) {
  const std::string& tolerance = cell(row, "tolerance");
  const double expected = std::abs(std::stod(cell(row, "expected")));
  if (tolerance == "exact") return 1e-9 * expected;
  if (tolerance.starts_with("abs ")) return std::stod(tolerance.substr(4));
  return std::stod(tolerance) * expected;
}

bool elsewhere(const CsvRow& row) { return !cell(row, "where").empty(); }
bool known_gap(const CsvRow& row) { return !cell(row, "known_gap").empty(); }

TEST(Cases, AreAnsweredWithinTheirTolerances) {
  for (const CsvRow& row : table().rows) {
    if (elsewhere(row) || cell(row, "request").empty()) continue;
    SCOPED_TRACE(cell(row, "id") + " " + cell(row, "quantity") + ": " + cell(row, "title"));
    const double value = predicted(row);
    if (known_gap(row)) {
      std::cout << cell(row, "id") << " " << cell(row, "quantity") << ", a known gap: " << value
                << " for " << cell(row, "expected") << "\n";
    } else {
      EXPECT_NEAR(value, std::stod(cell(row, "expected")), allowed(row));
    }
  }
}

TEST(Cases, AtLeastFourInFiveAreMet) {
  const auto gaps = std::count_if(table().rows.begin(), table().rows.end(), known_gap);
  EXPECT_GE(table().rows.size(), 75u);
  EXPECT_LE(static_cast<double>(gaps), 0.2 * static_cast<double>(table().rows.size()));
}

// A row is asked here, tested elsewhere, or a gap that says why; and cites who asked.
TEST(Cases, EachSaysWhereItIsTested) {
  for (const CsvRow& row : table().rows) {
    SCOPED_TRACE(cell(row, "id") + " " + cell(row, "quantity"));
    EXPECT_FALSE(cell(row, "source").empty());
    EXPECT_TRUE(elsewhere(row) || known_gap(row) || !cell(row, "request").empty());
    if (!elsewhere(row)) continue;
    const std::string& where = cell(row, "where");  // "rules_test.cpp: Rules.Name"
    const std::string test = where.substr(where.find(": ") + 2);
    const std::size_t dot = test.find('.');
    const std::string text =
        read_text(default_data_dir() + "/../" + where.substr(0, where.find(": ")), kMaxCsvBytes);
    EXPECT_NE(text.find("TEST(" + test.substr(0, dot) + ", " + test.substr(dot + 1) + ")"),
              std::string::npos)
        << where;
  }
}

}  // namespace
}  // namespace orrery

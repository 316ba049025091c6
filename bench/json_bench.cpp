// Reading and writing JSON: the catalog is read at each start, reports can be large.
#include <benchmark/benchmark.h>

#include "core/json.h"

namespace orrery {
namespace {

Json list_of_entries(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; ++i) {
    list.push_back(Json::object({{"name", "entry"}, {"index", i}, {"value", i * 0.1}}));
  }
  return list;
}

void parse(benchmark::State& state) {
  const std::string text = list_of_entries(static_cast<int>(state.range(0))).dump();
  for (auto _ : state) benchmark::DoNotOptimize(parse_json(text, "bench"));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK(parse)->Arg(100)->Arg(10000);

void dump(benchmark::State& state) {
  const Json json = list_of_entries(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(json.dump());
}
BENCHMARK(dump)->Arg(100)->Arg(10000);

}  // namespace
}  // namespace orrery

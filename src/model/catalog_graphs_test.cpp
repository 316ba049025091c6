// Every model of the catalog that can be trained here has a graph with all its weights.
#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "model/build.h"
#include "model/count.h"

namespace orrery {
namespace {

std::int64_t parameter_elements(const Layer& layer) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : layer.tensors) {
    sum += tensor.role == TensorRole::parameter ? tensor.elements : 0;
  }
  return sum;
}

std::int64_t parameter_elements(const OpGraph& graph, const Architecture& a) {
  std::int64_t sum = graph.tied_embeddings ? -a.vocab * a.hidden : 0;
  for (const std::vector<Run>& runs : {graph.front, graph.body, graph.back}) {
    for (const Run& run : runs) sum += run.count * parameter_elements(graph.layers[run.layer]);
  }
  return sum;
}

// Weights that a description counts without saying where they act.
std::int64_t counted_only(const Architecture& a) {
  std::int64_t sum = 0;
  for (const auto& [what, weights] : a.extra) sum += weights;
  for (const Tower& tower : a.towers) sum += counted_only(tower.stack);
  return sum;
}

TEST(CatalogGraphs, HoldEveryCountedWeight) {
  const Catalog catalog = Catalog::load(default_data_dir());
  int graphs = 0;
  for (const std::string& name : catalog.names(EntryKind::model)) {
    const Architecture a = catalog.model(name);
    if (!unlowered(a).empty()) continue;
    const OpGraph graph = training_graph(a, {.micro_batch = 1, .seq_len = 4096});
    EXPECT_EQ(parameter_elements(graph, a) + counted_only(a), parameters(a).total()) << name;
    ++graphs;
  }
  EXPECT_GT(graphs, 30);
}

}  // namespace
}  // namespace orrery

#include "twin/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cost/price.h"
#include "plan/local.h"
#include "plan/rules.h"

namespace orrery {
namespace {

// The operators of one pass over a layer whose matrix or operands are of `matrix`.
bool belongs(const Layer& layer, const Op& op, const std::string& matrix) {
  const Op& root = op.forward ? layer.ops[op.forward] : op;
  if (op.kind == OpKind::matmul) return root.name == matrix;
  return op.kind == OpKind::cast && (root.name == matrix || root.name == matrix + ".cast" ||
                                     root.name == matrix + ".weight_cast");
}

// Kernels of one matrix in one layer, and gathers of what they read, as a Program without ranks:
// enough to be priced.
class MatrixWork {
 public:
  MatrixWork(const Layer& layer, const Strategy& strategy, const std::string& matrix)
      : layer_(layer), strategy_(strategy), local_(strategy) {
    const LayerPasses passes = passes_of(layer, strategy.recompute);
    for (const auto* turns : {&passes.forward, &passes.backward}) {
      gathered_.clear();
      for (const Turn& turn : *turns) {
        if (belongs(layer, layer.ops[turn.op], matrix)) add(turn);
      }
    }
  }

  Seconds time(const Machine& machine) const {
    const Prices prices = price(program_, machine);
    Seconds sum;
    for (const Seconds kernel : prices.kernels) sum += kernel;
    for (const Price& comm : prices.comms) sum += comm.duration;
    return sum;
  }

 private:
  void add(const Turn& turn) {
    program_.kernels.push_back(local_.kernel(layer_, turn));
    if (!strategy_.sequence_parallel) return;
    const Op& op = layer_.ops[turn.op];
    for (const TensorId id : op.reads) {
      const Tensor& tensor = layer_.tensors[id];
      if (tensor.role == TensorRole::parameter || !local_.spans_tokens(op, id, layer_)) continue;
      if (!gathered_.insert(id).second) continue;
      program_.comms.push_back({.op = CollectiveOp::all_gather,
                                .kind = GroupKind::tensor,
                                .group = group_of(GroupKind::tensor, strategy_),
                                .size = local_.gathered_bytes(tensor),
                                .dtype = tensor.dtype});
    }
  }

  const Layer& layer_;
  const Strategy& strategy_;
  Local local_;
  Program program_{};
  std::set<TensorId> gathered_;
};

// Every side of a matrix's products on one rank, as rules_framework.cpp asks of whole jobs. The
// rows of each expert are padded.
bool aligned(const Layer& layer, OpId matmul, const Strategy& strategy) {
  const Kernel kernel = Local(strategy).kernel(layer, {matmul});
  const auto& shape = std::get<Matmul>(kernel.shape);
  if (!eight_bit_shape(shape.n, shape.n) || !eight_bit_shape(shape.k, shape.k)) return false;
  if (shape.groups > 1 || layer.ops[matmul].parallel == Parallel::expert_columns ||
      layer.ops[matmul].parallel == Parallel::expert_rows) {
    return true;
  }
  const std::int64_t slices = strategy.sequence_parallel ? strategy.tp : 1;
  return shape.m % (16 * slices) == 0;
}

// Weighs one graph in 16 bits against the same in fp8.
class Weighing {
 public:
  explicit Weighing(const Scenario& asked)
      : wide_(asked), machine_{asked.cluster, asked.kernels, asked.framework, asked.attention} {
    wide_.weighs_precision = false;
    narrow_ = wide_;
    narrow_.precision = Precision::fp8;
  }

  std::vector<Settled> candidates() const {
    if (const std::string why = impossible(); !why.empty()) return {none_narrow(why)};
    const Settled by_matrix = best_by_matrix();
    std::vector<Settled> candidates = {by_matrix};
    if (narrow(by_matrix.choices) > 0) candidates.push_back(all_wide(by_matrix));
    if (narrow(by_matrix.choices) < weighed(by_matrix.choices)) {
      candidates.push_back(all_narrow(by_matrix));
    }
    return candidates;
  }

 private:
  std::string impossible() const {
    const Gpu& gpu = wide_.cluster.gpu;
    if (!gpu.supports(Precision::fp8)) return gpu.name + " has no fp8 units";
    if (wide_.job.task == Task::qlora) return "4-bit weights are brought to 16 bits";
    if (wide_.precision == Precision::fp32) return "its base is fp32";
    return "";
  }

  Settled none_narrow(const std::string& why) const {
    Settled settled = {wide_, {}};
    const OpGraph graph = training_graph(wide_.model, graph_options(wide_));
    for (const Layer& layer : graph.layers) {
      for (const OpId id : layer.forward) {
        if (layer.ops[id].kind != OpKind::matmul) continue;
        settled.choices.push_back({layer.name, layer.ops[id].name, wide_.precision, {}, {}, why});
      }
    }
    return settled;
  }

  Settled best_by_matrix() const {
    const OpGraph in_wide = training_graph(wide_.model, graph_options(wide_));
    const OpGraph in_narrow = training_graph(narrow_.model, graph_options(narrow_));
    std::map<std::string, const Layer*> by_name;
    for (const Layer& layer : in_wide.layers) by_name[layer.name] = &layer;
    Settled settled = {narrow_, {}};
    for (const Layer& layer : in_narrow.layers) {
      for (const OpId id : layer.forward) {
        if (layer.ops[id].kind != OpKind::matmul) continue;
        settled.choices.push_back(choice(layer, id, by_name[layer.name]));
      }
    }
    settle(settled);
    return settled;
  }

  MatrixChoice choice(const Layer& layer, OpId id, const Layer* in_wide) const {
    const Op& op = layer.ops[id];
    MatrixChoice choice = {layer.name, op.name, wide_.precision, {}, {}, ""};
    if (op.precision != Precision::fp8) {
      choice.why = in_wide ? "kept by rule: " + layer.name + " " + op.name + " is never fp8"
                           : "kept by fp8-keep-layers";
      return choice;
    }
    if (!aligned(layer, id, wide_.strategy)) {
      choice.why = "a side on one rank is no multiple of 16";
      return choice;
    }
    choice.narrow = MatrixWork(layer, wide_.strategy, op.name).time(machine_);
    choice.wide = MatrixWork(*in_wide, wide_.strategy, op.name).time(machine_);
    if (*choice.narrow < *choice.wide) choice.precision = Precision::fp8;
    const double faster = std::max(*choice.wide, *choice.narrow) /
                          std::max(std::min(*choice.wide, *choice.narrow), Seconds(1e-12));
    choice.why = fmt::format("{:.0f} % faster, casts included", 100 * (faster - 1));
    return choice;
  }

  Settled all_wide(const Settled& by_matrix) const {
    Settled settled = by_matrix;
    for (MatrixChoice& choice : settled.choices) {
      if (choice.precision != Precision::fp8) continue;
      choice.precision = wide_.precision;
      choice.why = "the whole step is faster with all in 16 bits";
    }
    settle(settled);
    return settled;
  }

  // fp8 in every matrix that a rule does not keep.
  Settled all_narrow(const Settled& by_matrix) const {
    Settled settled = by_matrix;
    for (MatrixChoice& choice : settled.choices) {
      if (!choice.narrow || choice.precision == Precision::fp8) continue;
      choice.precision = Precision::fp8;
      choice.why = "the whole step is faster with it in fp8";
    }
    settle(settled);
    return settled;
  }

  static std::int64_t narrow(const std::vector<MatrixChoice>& choices) {
    return std::count_if(choices.begin(), choices.end(), [](const MatrixChoice& choice) {
      return choice.precision == Precision::fp8;
    });
  }
  static std::int64_t weighed(const std::vector<MatrixChoice>& choices) {
    return std::count_if(choices.begin(), choices.end(),
                         [](const MatrixChoice& choice) { return choice.narrow.has_value(); });
  }

  // The scenario that computes as chosen.
  void settle(Settled& settled) const {
    if (narrow(settled.choices) == 0) {
      settled.scenario = wide_;
      return;
    }
    settled.scenario = narrow_;
    for (const MatrixChoice& choice : settled.choices) {
      if (choice.precision != Precision::fp8) settled.scenario.kept.names.insert(choice.name());
    }
  }

  Scenario wide_, narrow_;
  Machine machine_;
};

}  // namespace

std::vector<Settled> precision_candidates(const Scenario& scenario) {
  return Weighing(scenario).candidates();
}

}  // namespace orrery

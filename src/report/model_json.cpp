#include "model/build.h"
#include "model/count.h"
#include "report/model.h"

namespace orrery {
namespace {

constexpr double gib = 1 << 30;

Json or_null(std::int64_t number) { return number > 0 ? Json(number) : Json(); }

Json kinds_json(const Architecture& model) {
  Json kinds = Json::array();
  for (const auto& [kind, count] : folded_runs(model)) {
    kinds.push_back(Json::object({{"name", kind.name},
                                  {"count", count},
                                  {"mixer", to_text(kind.mixer)},
                                  {"window", or_null(kind.window)},
                                  {"chunked", kind.chunked},
                                  {"feed_forward", or_null(kind.ffn)},
                                  {"experts", kind.experts},
                                  {"cross_attention", kind.cross_attention}}));
  }
  return kinds;
}

Json experts_json(const Architecture& model) {
  const Experts& e = model.experts;
  if (e.count == 0) return {};
  return Json::object({{"count", e.count},
                       {"top_k", e.top_k},
                       {"width", e.width},
                       {"shared_width", e.shared_width},
                       {"layers", expert_layers(model)}});
}

std::int64_t towers_total(const ParameterCount& n) {
  std::int64_t sum = 0;
  for (const auto& [name, weights] : n.towers) sum += weights;
  return sum;
}

Json parameters_json(const ParameterCount& n) {
  return Json::object({{"total", n.total()},
                       {"active", n.active()},
                       {"mtp", n.mtp},
                       {"by_part", Json::object({{"embedding", n.embedding},
                                                 {"positions", n.positions},
                                                 {"attention", n.attention},
                                                 {"state_space", n.state_space},
                                                 {"mlp", n.mlp},
                                                 {"experts", n.experts},
                                                 {"shared_experts", n.shared_experts},
                                                 {"router", n.router},
                                                 {"norms", n.norms},
                                                 {"head", n.head},
                                                 {"towers", towers_total(n)},
                                                 {"projectors", n.projectors},
                                                 {"extra", n.extra}})}});
}

Json flops_json(const Architecture& model, std::int64_t seq_len) {
  const auto flop = [&](FlopConvention convention) {
    return flop_per_token(model, seq_len, convention).value();
  };
  return Json::object({{"seq_len", seq_len},
                       {"full_attention", flop(FlopConvention::full_attention)},
                       {"causal_attention", flop(FlopConvention::causal_attention)},
                       {"six_n", flop(FlopConvention::six_n)},
                       {"mtp", mtp_flop_per_token(model, seq_len).value()}});
}

Json longest_json(const Architecture& model) {
  if (model.max_positions == 0) return {};
  const auto kept = [&](Precision precision) {
    return kv_bytes(model, model.max_positions, precision).value() / gib;
  };
  return Json::object({{"tokens", model.max_positions},
                       {"bf16", kept(Precision::bf16)},
                       {"fp8", kept(Precision::fp8)}});
}

Json weights_json(const ParameterCount& n) {
  const auto stored = [&](Precision precision) {
    return static_cast<double>(n.total()) * element_size(precision).value() / gib;
  };
  return Json::object({{"bf16", stored(Precision::bf16)},
                       {"fp8", stored(Precision::fp8)},
                       {"int4", stored(Precision::fp4)}});
}

Json towers_json(const Architecture& model, const ParameterCount& n) {
  Json towers = Json::array();
  for (std::size_t i = 0; i < model.towers.size(); ++i) {
    const Tower& tower = model.towers[i];
    towers.push_back(Json::object({{"name", tower.name},
                                   {"parameters", n.towers[i].second},
                                   {"layers", tower.stack.layers},
                                   {"hidden", tower.stack.hidden},
                                   {"tokens", tower.tokens},
                                   {"tokens_out", tower.tokens_out},
                                   {"flops", flop_per_input(tower).value()}}));
  }
  return towers;
}

Json defaults_json(const Architecture& model) {
  Json defaults = Json::array();
  for (const std::string& text : model.defaults) defaults.push_back(text);
  return defaults;
}

}  // namespace

Json model_json(const Architecture& model, std::int64_t seq_len) {
  const ParameterCount n = parameters(model);
  const std::string refusal = unlowered(model);
  return Json::object(
      {{"schema_version", 1},
       {"name", model.name},
       {"family", model.family},
       {"not_predicted", refusal.empty() ? Json() : Json(refusal)},
       {"layers", model.layers},
       {"layer_kinds", kinds_json(model)},
       {"hidden", model.hidden},
       {"heads", or_null(model.heads)},
       {"kv_heads", or_null(model.kv_heads)},
       {"head_dim", or_null(model.head_dim)},
       {"feed_forward", or_null(model.ffn)},
       {"activation", to_text(model.activation)},
       {"norm", to_text(model.norm)},
       {"experts", experts_json(model)},
       {"vocabulary", or_null(model.vocab)},
       {"tied_embeddings", model.tied_embeddings},
       {"positions", to_text(model.positions)},
       {"context", or_null(model.max_positions)},
       {"parameters", parameters_json(n)},
       {"flops_per_token", flops_json(model, seq_len)},
       {"kv_bytes_per_token", kv_bytes_per_token(model, Precision::bf16).value()},
       {"kv_bytes_per_token_fp8", kv_bytes_per_token(model, Precision::fp8).value()},
       {"kv_gib", longest_json(model)},
       {"state_bytes", state_bytes(model, Precision::bf16).value()},
       {"weights_gib", weights_json(n)},
       {"towers", towers_json(model, n)},
       {"defaults", defaults_json(model)}});
}

}  // namespace orrery

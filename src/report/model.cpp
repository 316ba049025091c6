#include "report/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "model/build.h"
#include "model/count.h"
#include "units/text.h"

namespace orrery {
namespace {

std::string whole(std::int64_t number) { return grouped(static_cast<double>(number)); }

Table two_columns() { return {.columns = {{""}, {""}}, .rows = {}, .indent = "  "}; }

std::string window_text(const LayerKind& kind) {
  if (kind.window == 0) return "";
  return fmt::format(" {} {} tokens", kind.chunked ? "in blocks of" : "over the last",
                     whole(kind.window));
}

std::string experts_text(const Experts& e) {
  std::string text = fmt::format("{} of {} experts of {}", e.top_k, e.count, whole(e.width));
  if (e.shared_width > 0) text += fmt::format(" and a shared one of {}", whole(e.shared_width));
  return text;
}

std::string kind_text(const Architecture& model, const LayerKind& kind) {
  std::vector<std::string> parts;
  if (kind.mixer != Mixer::none) {
    parts.push_back(std::string(to_text(kind.mixer)) + window_text(kind));
  }
  if (kind.cross_attention) parts.emplace_back("cross attention");
  if (kind.ffn > 0) parts.push_back("feed-forward of " + whole(kind.ffn));
  if (kind.experts) parts.push_back(experts_text(model.experts));
  return join(parts);
}

void add_layers(Table& table, const Architecture& model) {
  const std::vector<LayerRun> kinds = folded_runs(model);
  const bool in_turn = kinds.size() < layer_runs(model).size();
  table.rows.push_back({"layers", whole(model.layers) + (in_turn ? ", in turn" : "")});
  for (const auto& [kind, count] : kinds) {
    table.rows.push_back({fmt::format("  {} {}", count, kind.name), kind_text(model, kind)});
  }
}

bool mixes_by(const Architecture& model, Mixer mixer) {
  return std::ranges::any_of(layer_runs(model),
                             [&](const LayerRun& run) { return run.kind.mixer == mixer; });
}

bool has_feed_forward(const Architecture& model) {
  return std::ranges::any_of(
      layer_runs(model), [](const LayerRun& run) { return run.kind.ffn > 0 || run.kind.experts; });
}

void add_attention(Table& table, const Architecture& model) {
  if (mixes_by(model, Mixer::attention)) {
    table.rows.push_back({"heads", fmt::format("{} of {}, {} for keys and values", model.heads,
                                               model.head_dim, model.kv_heads)});
  }
  if (mixes_by(model, Mixer::latent_attention)) {
    const LatentAttention& l = model.latent;
    const std::string queries = l.q_rank > 0 ? fmt::format("rank {}", l.q_rank) : "full rank";
    table.rows.push_back(
        {"heads",
         fmt::format("{} of {} + {}, values of {}; queries of {}, keys and values of {}",
                     model.heads, l.nope_dim, l.rope_dim, l.value_dim, queries, l.kv_rank)});
  }
}

void add_state_space(Table& table, const Architecture& model) {
  const StateSpace& s = model.state_space;
  if (s.inner == 0) return;
  table.rows.push_back(
      {"state space", fmt::format("{} channels, {} states, {} taps", s.inner, s.state, s.conv)});
}

Table shape_table(const Architecture& model) {
  Table table = two_columns();
  add_layers(table, model);
  table.rows.push_back({"hidden", whole(model.hidden)});
  add_attention(table, model);
  add_state_space(table, model);
  if (has_feed_forward(model)) {
    table.rows.push_back({"activation", std::string(to_text(model.activation))});
  }
  table.rows.push_back({"positions", std::string(to_text(model.positions))});
  if (model.vocab > 0) {
    const char* head = !model.has_head ? "" : model.tied_embeddings ? ", tied to the head" : "";
    table.rows.push_back({"vocabulary", whole(model.vocab) + head});
  }
  if (model.max_positions > 0) {
    table.rows.push_back({"context", whole(model.max_positions) + " tokens"});
  }
  return table;
}

std::vector<std::pair<std::string, std::int64_t>> parts_of(const ParameterCount& n) {
  std::vector<std::pair<std::string, std::int64_t>> parts = {{"embedding", n.embedding},
                                                             {"positions", n.positions},
                                                             {"attention", n.attention},
                                                             {"state space", n.state_space},
                                                             {"feed-forward", n.mlp},
                                                             {"routed experts", n.experts},
                                                             {"shared experts", n.shared_experts},
                                                             {"router", n.router},
                                                             {"norms", n.norms},
                                                             {"head", n.head}};
  for (const auto& [name, weights] : n.towers) parts.emplace_back(name + " tower", weights);
  parts.emplace_back("projectors", n.projectors);
  parts.emplace_back("other", n.extra);
  return parts;
}

Table parameter_table(const ParameterCount& n) {
  Table table{.columns = {{"parameters"}, {"", Align::right}, {"", Align::right}},
              .rows = {},
              .indent = "  "};
  const auto add = [&](const std::string& part, std::int64_t weights) {
    const double share = static_cast<double>(weights) / static_cast<double>(n.total());
    table.rows.push_back({part, whole(weights), fmt::format("{:.1f} %", 100 * share)});
  };
  for (const auto& [part, weights] : parts_of(n)) {
    if (weights > 0) add(part, weights);
  }
  add("total", n.total());
  if (n.active() != n.total()) add("active for a token", n.active());
  if (n.mtp > 0) add("beside: multi-token prediction", n.mtp);
  return table;
}

Table flop_table(const Architecture& model, std::int64_t seq_len) {
  Table table{.columns = {{"FLOPs of a trained token"}, {"", Align::right}, {""}},
              .rows = {},
              .indent = "  "};
  const auto add = [&](FlopConvention convention, const std::string& what) {
    table.rows.push_back({std::string(name_of(convention)),
                          to_text(flop_per_token(model, seq_len, convention)), what});
  };
  const std::string tokens = whole(seq_len) + " tokens";
  add(FlopConvention::full_attention, "every pair of " + tokens);
  add(FlopConvention::causal_attention, "pairs of " + tokens + " that see each other");
  add(FlopConvention::six_n, "6 x active parameters");
  if (model.mtp_layers > 0) {
    table.rows.push_back(
        {"beside: multi-token prediction", to_text(mtp_flop_per_token(model, seq_len)), "causal"});
  }
  return table;
}

Table memory_table(const Architecture& model, const ParameterCount& n) {
  Table table{.columns = {{"memory"},
                          {"bf16", Align::right},
                          {"fp8", Align::right},
                          {"4 bit", Align::right}},
              .rows = {},
              .indent = "  "};
  const auto weights = [&](Precision precision) {
    return to_text(static_cast<double>(n.total()) * element_size(precision));
  };
  table.rows.push_back(
      {"weights", weights(Precision::bf16), weights(Precision::fp8), weights(Precision::fp4)});
  const auto add = [&](const std::string& what, auto bytes) {
    if (bytes(Precision::bf16) <= Bytes(0)) return;
    table.rows.push_back(
        {what, to_text(bytes(Precision::bf16)), to_text(bytes(Precision::fp8)), ""});
  };
  add("keys and values of a token",
      [&](Precision precision) { return kv_bytes_per_token(model, precision); });
  const std::int64_t longest = model.max_positions;
  add(fmt::format("of {} tokens", whole(longest)),
      [&](Precision precision) { return kv_bytes(model, longest, precision); });
  add("state of a sequence", [&](Precision precision) { return state_bytes(model, precision); });
  return table;
}

Table tower_table(const Architecture& model) {
  Table table{.columns = {{"tower"},
                          {"layers", Align::right},
                          {"hidden", Align::right},
                          {"tokens", Align::right},
                          {"of them to the model", Align::right},
                          {"FLOPs trained", Align::right}},
              .rows = {},
              .indent = "  "};
  for (const Tower& tower : model.towers) {
    table.rows.push_back({tower.name, whole(tower.stack.layers), whole(tower.stack.hidden),
                          whole(tower.tokens), whole(tower.tokens_out),
                          to_text(flop_per_input(tower))});
  }
  return table;
}

}  // namespace

std::vector<LayerRun> folded_runs(const Architecture& model) {
  std::vector<LayerRun> folded;
  for (const LayerRun& run : layer_runs(model)) {
    const auto same = std::ranges::find(folded, run.kind, &LayerRun::kind);
    if (same == folded.end()) {
      folded.push_back(run);
    } else {
      same->count += run.count;
    }
  }
  return folded;
}

void print_model(std::ostream& out, const Architecture& model, std::int64_t seq_len,
                 const Style& style) {
  const ParameterCount n = parameters(model);
  out << style.bold(model.name) << "  " << model.family << ", "
      << count_text(static_cast<double>(n.total())) << " parameters";
  if (n.routed < n.experts) out << ", " << count_text(static_cast<double>(n.active())) << " active";
  out << '\n';
  if (const std::string why = unlowered(model); !why.empty())
    out << "  not predicted: " << why << '\n';
  std::vector<Table> tables = {shape_table(model), parameter_table(n), flop_table(model, seq_len),
                               memory_table(model, n)};
  if (!model.towers.empty()) tables.push_back(tower_table(model));
  if (!model.defaults.empty()) {
    tables.push_back(
        {.columns = {{"left out of the configuration, so as the family's code has it"}},
         .rows = {},
         .indent = "  "});
    for (const std::string& fact : model.defaults) tables.back().rows.push_back({fact});
  }
  for (const Table& table : tables) {
    out << '\n';
    print_table(out, table, style);
  }
}

}  // namespace orrery

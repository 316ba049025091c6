#include "tables/expert_exchange_rows.h"

#include <charconv>
#include <optional>

namespace orrery {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 31;

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// "128" of "128 tokens/rank, hidden 7168, top-8, experts 256".
std::optional<std::int64_t> number_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || value < 1 || value > most) return std::nullopt;
  return value;
}
std::optional<std::int64_t> after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? std::nullopt : number_at(text, at + word.size());
}
std::optional<std::int64_t> before(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
  return number_at(text, at);
}

// H800's links are cut to 8 of 18. DeepSeek's nodes have a port of 400 Gb/s for each GPU.
BytesPerSecond link_of(std::string_view gpu) {
  return BytesPerSecond(gpu.starts_with("h800") ? 200e9 : 450e9);
}
constexpr BytesPerSecond nic(50e9);
// DeepSeek-V3's, where a row does not say.
constexpr std::int64_t usual_experts = 256;

}  // namespace

std::string read_expert_exchange(const CsvCells& cells, KernelRow& row) {
  if (!cells.has("time_us")) return "a rate without a time";
  const std::string_view mode = cells.text("mode"), library = cells.text("library");
  const auto tokens = before(mode, " tokens"), hidden = after(mode, "hidden ");
  const auto top_k = after(mode, "top-");
  if (!tokens || !hidden || !top_k || !cells.has("gpus")) return "its shape is not stated";
  ExpertExchangeShape shape;
  shape.combine = cells.text("op") == "ep_combine";
  shape.low_latency = mentions(library, "low-latency");
  shape.tokens = *tokens;
  shape.hidden = *hidden;
  shape.top_k = *top_k;
  shape.experts = after(mode, "experts ").value_or(usual_experts);
  shape.ranks = cells.integer("gpus", 1, most);
  shape.nodes = cells.has("nodes") ? cells.integer("nodes", 1, most) : 1;
  shape.sms = before(library, " SMs").value_or(shape.sms);
  shape.link = link_of(row.gpu);
  shape.nic = nic;
  row.op = "expert-exchange";
  row.library = "deepep";
  row.variant = std::string(shape.combine ? "combine" : "dispatch") +
                (shape.low_latency ? " low-latency" : " normal");
  row.family = hash_of("hidden " + std::to_string(*hidden) + ", top " + std::to_string(*top_k) +
                       " of " + std::to_string(shape.experts));
  row.fitted = shape.nodes == 1 && row.gpu == "h100-sxm";
  row.shape = shape;
  return "";
}

}  // namespace orrery

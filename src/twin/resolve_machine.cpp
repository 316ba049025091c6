#include <fmt/format.h>

#include <charconv>

#include "core/error.h"
#include "twin/resolver.h"

namespace orrery {
namespace {

constexpr double max_price = 1e6;  // USD an hour; costs of the longest run stay finite

// What the catalog has under the key's text, its errors with the key's place.
template <class Find>
auto found(const Asked& name, Find find) {
  try {
    return find(name.text());
  } catch (const InputError& error) {
    throw error.within(name.place());
  }
}

}  // namespace

Node Resolver::node(const Gpu& gpu) {
  if (const Asked name = asked("node")) {
    return found(name, [&](const std::string& text) { return catalog_.node(text); });
  }
  assume("node", gpu.node, "the server that this GPU usually sits in");
  return catalog_.node(gpu.node);
}

std::int64_t Resolver::gpus() {
  std::int64_t product = 1;
  bool divided = false;
  for (const char* key : {"tp", "pp", "cp", "dp"}) {
    const Asked given = asked(key);
    if (!given) continue;
    divided = true;
    product *= given.whole(1, max_ranks);
    if (product > max_ranks) {
      given.fail(fmt::format("makes more than {} ranks in all", max_ranks), "use fewer");
    }
  }
  return whole_or("gpus", product, max_ranks,
                  divided ? "tp x pp x cp x dp" : "one, unless told more");
}

std::optional<Fabric> Resolver::fabric(const Node& node, std::int64_t gpus, std::int64_t in_node) {
  if (const Asked name = asked("fabric")) {
    return found(name, [&](const std::string& text) { return catalog_.fabric(text); });
  }
  if (gpus <= in_node || !node.fabric) return std::nullopt;
  const Fabric usual = catalog_.fabric(*node.fabric);
  assume("fabric", usual.name, "what this server is usually joined by");
  return usual;
}

void Resolver::machine() {
  const Asked name = asked("gpu");
  if (!name) {
    throw InputError("no GPU is given", "", "add --gpu NAME, such as --gpu h100-sxm",
                     request_.place);
  }
  const Gpu gpu = found(name, [&](const std::string& text) { return catalog_.gpu(text); });
  const Node server = node(gpu);
  const std::int64_t count = gpus();
  const Asked per_node = asked("gpus-per-node");
  const std::int64_t used = per_node ? per_node.whole(1, 1024) : 0;
  const std::optional<Fabric> network =
      fabric(server, count, used ? used : server.gpus.value_or(1));
  try {
    scenario_.cluster = make_cluster(gpu, server, network, count, used);
  } catch (const InputError& error) {
    throw error.within(request_.place);
  }
  if (!per_node) {
    assume("gpus-per-node", std::to_string(scenario_.cluster.gpus_per_node),
           scenario_.cluster.nodes() > 1 ? "all that this server holds" : "one server is enough");
  }
  oversubscription();
}

void Resolver::oversubscription() {
  const Asked given = asked("oversubscription");
  if (!given) return;
  const std::string text =
      given.text().ends_with(":1") ? given.text().substr(0, given.text().size() - 2) : given.text();
  double factor = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, factor);
  if (error != std::errc() || stop != end || !(factor >= 1 && factor <= 1000)) {
    given.fail("is not a factor of at least 1", "give 2 or 2:1 for half of the bandwidth");
  }
  scenario_.cluster.oversubscription = factor;
}

void Resolver::power_and_price() {
  const Gpu& gpu = scenario_.cluster.gpu;
  if (const Asked cap = asked("power-cap")) {
    const Watts limit = cap.quantity<Watts>("W");
    const Watts highest = gpu.power.highest.value_or(gpu.power.limit.value());
    const Watts lowest = gpu.power.lowest.value_or(Watts(0));
    if (limit < lowest || limit > highest || limit <= Watts(0)) {
      cap.fail("cannot be set on " + gpu.name,
               fmt::format("its limits are {:.0f} W to {:.0f} W", lowest.value(), highest.value()));
    }
    scenario_.power_cap = limit;
  }
  if (const Asked price = asked("price")) {
    scenario_.gpu_price = price.quantity<DollarsPerSecond>("USD/h");
    if (scenario_.gpu_price->value() * 3600 > max_price) {
      price.fail("is out of range", fmt::format("give at most {:.0f} USD/h", max_price));
    }
  } else if (gpu.price.on_demand.known()) {
    scenario_.gpu_price = gpu.price.on_demand.value();
    assume("price", fmt::format("{:.2f} USD a GPU-hour", scenario_.gpu_price->value() * 3600),
           "on demand, as of " + gpu.price.as_of);
  } else {
    scenario_.warnings.push_back("no price of " + gpu.name +
                                 " is known, so there is no cost; give --price USD");
  }
}

}  // namespace orrery

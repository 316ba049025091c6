// Settles a request key by key, each group in a file of its own: resolve.cpp (model, framework,
// lengths), resolve_machine.cpp, resolve_job.cpp, resolve_strategy.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "twin/asked.h"
#include "twin/scenario.h"

namespace orrery {

inline constexpr std::int64_t max_ranks = 1 << 20;
inline constexpr std::int64_t max_batch = 1 << 24;

class Resolver {
 public:
  Resolver(const Request& request, const Catalog& catalog) : request_(request), catalog_(catalog) {}

  Scenario run();

 private:
  Asked asked(std::string key) const { return Asked(request_, std::move(key)); }
  void assume(std::string field, std::string value, std::string reason) {
    scenario_.assumptions.push_back({std::move(field), std::move(value), std::move(reason)});
  }
  std::int64_t whole_or(const std::string& key, std::int64_t fallback, std::int64_t high,
                        const std::string& reason);
  // A key that means nothing here is refused, if given, with `rule` and `mend`.
  void refuse(const std::string& key, const std::string& rule, const std::string& mend) const;
  std::string habit() const { return "what " + scenario_.framework.name + " does"; }

  void refuse_unknown_keys() const;
  void model();
  void precision();
  void framework();
  void lengths();
  void run_length();
  void convention();

  void machine();
  Node node(const Gpu&);
  std::int64_t gpus();
  std::optional<Fabric> fabric(const Node&, std::int64_t gpus, std::int64_t in_node);
  void oversubscription();
  void power_and_price();

  void job();
  void refuse_meaningless_of_custom() const;
  void task();
  void optimizer();
  void adapters();
  void freezing();
  void sequences();
  void experts();
  void fp8_copies();
  void batch_ramp();

  void strategy();
  void division();
  void expert_division();
  void memory_choices();
  void recompute();
  void offload();
  void batch();
  void schedule();
  void stage_layers();
  std::int64_t usual_chunks() const;

  const Request& request_;
  const Catalog& catalog_;
  Scenario scenario_{};
};

// "300B", "15T" or "2e12"; none for anything else.
std::optional<Tokens> token_count(std::string_view text);

}  // namespace orrery

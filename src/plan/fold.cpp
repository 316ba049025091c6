// Repetition found in a sequence: first short periods (runs of one step or of a forward and a
// backward), then, among the runs, longer ones, until nothing repeats.
#include <algorithm>
#include <map>

#include "plan/schedule.h"

namespace orrery {
namespace {

// A sequence of small integers, each naming one distinct node of a folded sequence.
using Symbols = std::vector<std::int32_t>;

struct Run {
  std::size_t period = 1, count = 1;
  std::size_t length() const { return period * count; }
};

std::size_t repetitions(const Symbols& s, std::size_t from, std::size_t period) {
  std::size_t at = from + period;
  while (at < s.size() && s[at] == s[at - period]) ++at;
  return (at - from) / period;
}

// The period, up to `longest`, whose repetitions from `from` on cover most; the shortest of equals.
Run best_run(const Symbols& s, std::size_t from, std::size_t longest) {
  Run best;
  for (std::size_t period = 1; period <= longest && from + 2 * period <= s.size(); ++period) {
    const Run run = {period, repetitions(s, from, period)};
    if (run.count > 1 && run.length() > best.length()) best = run;
  }
  return best;
}

class Folder {
 public:
  std::vector<Folded> fold(const std::vector<Step>& steps) {
    Symbols symbols;
    for (const Step& step : steps) symbols.push_back(leaf(step));
    for (std::size_t longest = 2; longest <= symbols.size(); longest *= 2) {
      symbols = fold_once(symbols, longest);
    }
    return expand(symbols);
  }

 private:
  // A node is a leaf (empty body) or a repeated body.
  struct Node {
    Step step;
    std::int64_t count;
    Symbols body;
  };

  std::int32_t leaf(const Step& step) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].step == step) return static_cast<std::int32_t>(i);
    }
    return add({step, 1, {}});
  }

  std::int32_t loop(std::int64_t count, const Symbols& body) {
    const auto [found, is_new] = loops_.try_emplace({count, body}, 0);
    if (is_new) found->second = add({{}, count, body});
    return found->second;
  }

  std::int32_t add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<std::int32_t>(nodes_.size() - 1);
  }

  Symbols fold_once(const Symbols& s, std::size_t longest) {
    Symbols folded;
    for (std::size_t i = 0; i < s.size();) {
      const Run run = best_run(s, i, longest);
      if (run.count == 1) {
        folded.push_back(s[i++]);
        continue;
      }
      const Symbols body(s.begin() + i, s.begin() + i + run.period);
      folded.push_back(loop(static_cast<std::int64_t>(run.count), body));
      i += run.length();
    }
    return folded;
  }

  std::vector<Folded> expand(const Symbols& symbols) const {
    std::vector<Folded> folded;
    for (const std::int32_t symbol : symbols) {
      const Node& node = nodes_[symbol];
      folded.push_back({node.count, expand(node.body), node.step});
    }
    return folded;
  }

  std::vector<Node> nodes_;
  std::map<std::pair<std::int64_t, Symbols>, std::int32_t> loops_;
};

void unfold_into(const std::vector<Folded>& folded, std::vector<Step>& steps) {
  for (const Folded& node : folded) {
    for (std::int64_t i = 0; i < node.count; ++i) {
      if (node.body.empty()) {
        steps.push_back(node.step);
      } else {
        unfold_into(node.body, steps);
      }
    }
  }
}

}  // namespace

std::vector<Folded> fold(const std::vector<Step>& steps) { return Folder().fold(steps); }

std::vector<Step> unfold(const std::vector<Folded>& folded) {
  std::vector<Step> steps;
  unfold_into(folded, steps);
  return steps;
}

}  // namespace orrery

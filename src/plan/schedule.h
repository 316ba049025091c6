// The order in which a pipeline stage runs the passes of micro-batches through its chunks, and
// which part of the model each chunk is.
//
// A backward pass is one step, or two where the schedule runs them apart: the gradient of the
// input, which the stage before waits for, and that of the weights, which nobody waits for and
// which so fills what would be a bubble.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/strategy.h"

namespace orrery {

enum class StepPass { forward, backward, input_gradient, weight_gradient };
std::string_view name_of(StepPass);

struct Step {
  StepPass pass;
  std::int32_t chunk;
  bool edge = false;  // the chunk's first forward or the last step that writes its gradients

  bool forward() const { return pass == StepPass::forward; }
  bool operator==(const Step&) const = default;
};

// Whether backward passes are run in two steps.
bool splits_backward(Schedule);

// Steps of `stage`: each chunk's micro-batches forwards and backwards, every forward before its
// backward, every input gradient before its weight gradient; both kinds first in, first out.
//   gpipe        Huang 2019.
//   1f1b         Narayanan 2021 (arXiv 2104.04473), figure 4.
//   interleaved  ibid., section 2.2; owes micro_batches a multiple of pp.
//   zb-h1        arXiv 2401.10241, section 2.1: 1F1B whose stage i runs weight gradients i
//                micro-batches late, so that no stage holds more than 1F1B's first.
//   zb-v         arXiv 2405.15362 (also 2401.10241, section 6): two chunks a stage.
//   dualpipe     arXiv 2412.19437, section 3.2.1, in the eight parts of DeepSeek's code
//                (github.com/deepseek-ai/DualPipe); owes vpp 2, pp even, micro_batches even and
//                at least 2 pp. Each chunk runs half of the micro-batches.
std::vector<Step> steps(Schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches,
                        std::int64_t stage);

// A chunk of a stage.
struct Place {
  std::int64_t stage, chunk;
  bool operator==(const Place&) const = default;
};

// Where the parts of the model lie, in order of execution. Interleaved chunks lie round after round
// (part = chunk x pp + stage). zb-v's second chunks come back from the last stage to the first, so
// that the first stage holds both ends. dualpipe holds the model twice: chunk 0 of stage r is part
// r, chunk 1 is part pp - 1 - r, and each chunk has its neighbours in its own copy.
class Placement {
 public:
  Placement(Schedule schedule, std::int64_t pp, std::int64_t vpp);

  std::int64_t parts() const { return copies() == 1 ? pp_ * chunks_ : pp_; }
  std::int64_t chunks() const { return chunks_; }  // of a stage
  std::int64_t copies() const { return schedule_ == Schedule::dual_pipe ? 2 : 1; }
  std::int64_t part(Place) const;
  Place place(std::int64_t part, std::int64_t copy = 0) const;
  // Who takes a chunk's output, and whose output it takes; none at the ends of the model.
  std::optional<Place> next(Place) const;
  std::optional<Place> previous(Place) const;

 private:
  std::optional<Place> neighbour(Place, std::int64_t distance) const;

  Schedule schedule_;
  std::int64_t pp_, chunks_;
};

// A sequence with its repetitions folded: unfold(fold(s)) == s, and its size grows with the kinds
// of repetition, not with their count.
struct Folded {
  std::int64_t count = 1;
  std::vector<Folded> body;  // empty: one step
  Step step = {};
};
std::vector<Folded> fold(const std::vector<Step>&);
std::vector<Step> unfold(const std::vector<Folded>&);

}  // namespace orrery

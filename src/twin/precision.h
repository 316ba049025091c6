// --precision auto: for each matrix 16 bits or fp8, whichever makes the step faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "twin/scenario.h"

namespace orrery {

/// One matrix of one kind of layer with its three products, which share a format: Transformer
/// Engine quantises by module.
struct MatrixChoice {
  std::string layer, matrix;  ///< "decoder", "fc1"
  Precision precision;
  /// Of one layer and micro-batch on one rank, forward and backward: products, casts (which take
  /// the absolute maximum along and write transposed copies where the GPU needs them) and the
  /// tensor ranks' gathers of operands. None where there is no choice.
  std::optional<Seconds> wide, narrow;
  std::string why;

  std::string name() const { return layer + "." + matrix; }
};

/// A scenario whose precision is settled, and how.
struct Settled {
  Scenario scenario;
  std::vector<MatrixChoice> choices;  ///< of every matrix
};

/// What a scenario that weighs its precision may be settled as, the best by matrix first. Then
/// 16 bits alone, and fp8 wherever a rule allows it, since only a whole step knows what waits for
/// what. Each at most once.
///
/// A matrix stays in 16 bits by rule where the GPU has no fp8; in embedding, head, router, adapters
/// and what else the graph computes in 16 bits; in layers that the scenario keeps; of 4-bit
/// weights; and where a side of a product on one rank is no multiple of 16.
std::vector<Settled> precision_candidates(const Scenario& scenario);

}  // namespace orrery

// One rank's part of an operator or a tensor: shapes, bytes and FLOPs divided by tp and cp.
#pragma once

#include "model/graph.h"
#include "plan/program.h"
#include "plan/saving.h"

namespace orrery {

class Local {
 public:
  explicit Local(const Strategy& strategy) : s_(strategy) {}

  // Of a tensor as this rank holds it. Fractions are kept: nothing is rounded up.
  double elements(const Tensor& tensor) const;
  Bytes bytes(const Tensor& tensor) const;
  // The same with the tokens of all tensor-parallel ranks.
  Bytes gathered_bytes(const Tensor& tensor) const;

  // Whether an operator needs (or gives a part of) every token of a tensor that sequence
  // parallelism divides: matmuls and the embedding's lookup.
  bool spans_tokens(const Op& op, TensorId tensor, const Layer& layer) const;

  Kernel kernel(const Layer& layer, const Turn& turn) const;
  // Weights that an operator reads and that are kept in 4 bits.
  double matrix_elements(const Layer& layer, const Op& op) const;

  // Keys and values of one layer, all tokens, this rank's heads.
  Bytes keys_and_values(const Attention& shape, Precision dtype) const;

 private:
  std::int64_t parts(const Tensor& tensor) const;
  Shape shape(const Op& op, double share) const;
  Bytes moved(const Layer& layer, const Op& op, TensorId tensor) const;

  const Strategy& s_;
};

}  // namespace orrery

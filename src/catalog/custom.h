// A model described by hand, as layers of named operators; for what no family covers, and for work
// that is no network at all (stencils, molecular dynamics), whose "tokens" are cells or atoms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace orrery {

enum class CustomSplit { none, columns, rows };

// [tokens, in] x [in, out]; the matrix is a parameter.
struct CustomMatmul {
  std::int64_t in, out;
  CustomSplit split = CustomSplit::none;  // over the tensor ranks: `out`, or `in`
};

// Work as its author counts it, a token, of the forward pass.
struct CustomWork {
  double flop, bytes;
  bool matrix;                       // runs on the matrix units; else on the vector units in fp32
  double backward;                   // the backward pass over the forward one
  std::optional<std::int64_t> kept;  // bytes a token till the backward pass; none: what it reads
  std::int64_t parameters;           // divided over the tensor ranks as what it writes
};

struct CustomOp {
  std::string name;
  std::vector<std::size_t> from;  // what it reads: 0 the layer's input, i + 1 of operator i
  std::int64_t width;             // numbers a token that it writes
  std::variant<CustomMatmul, CustomWork> what;
  bool divided = false;  // what it writes is divided over the tensor ranks
};

struct CustomLayer {
  std::string name;
  std::int64_t count;
  std::vector<CustomOp> ops;  // the last one writes the layer's output

  std::int64_t matrices() const;    // weights of its matmuls
  std::int64_t parameters() const;  // these and the others
  // Matmuls' 2 in out and the work's own, forward, or forward and backward.
  double forward_flop() const;
  double training_flop() const;
};

struct Custom {
  std::vector<CustomLayer> layers;  // empty: the model is not custom
  bool trained = true;              // false: a step is one forward pass

  explicit operator bool() const { return !layers.empty(); }
};

}  // namespace orrery

// One operator of a training step: what is computed, on which tensors, and how it may be divided.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "catalog/gpu.h"
#include "core/id.h"
#include "units/quantity.h"

namespace orrery {

struct TensorTag;
struct OpTag;
using TensorId = Id<TensorTag>;
using OpId = Id<OpTag>;

// How tensor parallelism divides a tensor.
enum class Split {
  none,      // every rank holds the whole
  features,  // heads, ffn or vocabulary are divided by tp; of a matrix, whichever side has them
  sequence,  // the tokens are divided by tp where sequence parallelism is on, else whole
  // Mixture of experts, whose tokens are divided by tp on entering. A parameter: experts over ep,
  // and the features of each over etp.
  experts,
  routed,           // an activation of tokens' copies, hidden wide: rows / (tp / etp)
  routed_features,  // of tokens' copies, an expert's feed-forward wide: also features / etp
};

enum class TensorRole { activation, gradient, parameter, parameter_gradient };

// `elements` of the whole micro-batch before any division; of a parameter: of the whole matrix.
struct Tensor {
  std::string name;
  TensorRole role;
  std::int64_t elements;
  Precision dtype;
  Split split;
  bool frozen = false;     // a parameter that is not trained: no gradient, no optimizer state
  bool quantised = false;  // a frozen parameter stored in 4 bits, brought to `dtype` at each use
};

// [m, k] x [k, n] -> [m, n]; m counts tokens except in weight gradients, where k does. Of `groups`
// products (experts), each has its own [k, n] and an equal share of the tokens.
struct Matmul {
  std::int64_t m, n, k;
  std::int64_t groups = 1;
};

// Scores of `queries` x `keys` per sequence and head, the queries being the last of the keys.
// `causal` and `window` (0: the whole context) say which pairs the kernel skips, so an unfused
// matmul, which computes every pair and masks later, is not causal here. `documents`: a sequence
// packs that many equal texts that do not see each other. `value_dim`: of values and outputs, where
// it is not head_dim (latent attention); 0: the same.
struct Attention {
  std::int64_t batch, heads, kv_heads, head_dim, queries, keys;
  bool causal;
  std::int64_t window;
  std::int64_t value_dim = 0;
  double documents = 1;
};

// Everything bound by memory: norms, activations, residuals, rotary, softmax, embedding, loss.
struct Elementwise {
  std::int64_t rows, width;  // elements = rows * width
  double flop_per_element;   // vector work, roughly; never counted as model FLOPs
};

// Work that a model described by hand states: `flop` and `bytes` a row, the latter in place of the
// operands' own. A gradient has `backward` times as much.
struct Stated {
  std::int64_t rows;
  double flop, bytes;
  double backward;
};

using Shape = std::variant<Matmul, Attention, Elementwise, Stated>;

enum class OpKind {
  matmul,
  attention,         // fused, never writes the scores
  attention_scores,  // unfused: q k^T
  softmax,           // unfused: scale, mask, softmax
  attention_values,  // unfused: p v
  norm,
  activation,
  rotary,
  residual,   // a sum of two; as a data gradient, the sum of two gradients of one tensor
  dropout,    // writes its output and a mask of one byte an element
  embedding,  // rows looked up in a table; learned positions are added
  cross_entropy,
  cast,         // to the narrower operands of a matmul (fp8)
  routing,      // softmax or sigmoid over the experts and the best of them
  dispatch,     // copies tokens for their experts; the copies then travel (all-to-all over ep)
  combine,      // copies travel back, and their weighted sum is a token's output
  convolution,  // of Mamba, along the sequence, each channel for itself
  scan,         // of Mamba, the recurrence along the sequence
  matrix_work,  // stated, on the matrix units; may write a second tensor, which it keeps
  vector_work,  // stated, on the vector units; likewise
};

enum class Pass { forward, data_gradient, weight_gradient };

// What tensor parallelism divides, and so which collective it calls for. A gradient operator has
// the value of its forward operator, whose matmul is [tokens, k] x [k, n]:
//   columns: forward n, dgrad k, wgrad n;   rows: forward k, dgrad n, wgrad m.
enum class Parallel {
  none,
  columns,     // n / tp: input is gathered (sequence parallel) or shared, its gradient reduced
  rows,        // k / tp: output is reduced, its gradient gathered or shared
  heads,       // attention: heads / tp and kv_heads / tp
  tokens,      // elementwise in the sequence-parallel region: rows / tp
  features,    // elementwise on a divided width: width / tp
  vocabulary,  // lookup: output is reduced; loss: width / tp, statistics of each token reduced
  // Mixture of experts; a matmul has one group an expert.
  expert_columns,   // groups / ep, n / etp
  expert_rows,      // groups / ep, k / etp
  expert_features,  // elementwise: rows as routed, width / etp
  routed,           // elementwise: rows as routed
};

struct Op {
  std::string name;  // "qkv", "qkv.dgrad", "qkv.wgrad"
  OpKind kind;
  Pass pass;
  Shape shape;  // undivided
  Parallel parallel;
  Precision precision;  // of the arithmetic
  // Activations and gradients first, then parameters; a matmul reads {x, weight[, bias]}.
  std::vector<TensorId> reads, writes;
  OpId forward;            // of a gradient: the operator it differentiates; else none
  bool quantised = false;  // a matmul whose weight is brought from 4 bits first
};

// What an operator does, undivided: matrix FLOPs (a multiply and an add are two), and bytes at
// least: each operand once, of an embedding table only the rows looked up.
struct Work {
  Flop flop;
  Bytes read, written;
};

}  // namespace orrery

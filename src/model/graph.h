// What one micro-batch must compute: kinds of layer, each with forward and backward operators.
#pragma once

#include <string>
#include <vector>

#include "core/id.h"
#include "model/op.h"

namespace orrery {

struct LayerTag;
using LayerId = Id<LayerTag>;

// A kind of layer: its tensors, its operators in order, and what passes through it.
struct Layer {
  std::string name;  // "embedding", "decoder", "head"
  IdVector<TensorId, Tensor> tensors;
  IdVector<OpId, Op> ops;
  std::vector<OpId> forward;   // in order of execution
  std::vector<OpId> backward;  // in order of execution
  TensorId input, output;      // activations that enter and leave (none: token ids, the loss)
  // What passes between layers, by name: layers that take what others give name it alike.
  std::string takes = "hidden", gives = "hidden";
  // None where nothing needs them: a layer with no output gradient has no backward pass.
  TensorId input_gradient, output_gradient;

  // Activations, written in the forward pass or the input, that a backward operator reads: they
  // must live (or be recomputed) till then. In order of id, each once.
  std::vector<TensorId> saved() const;
};

// A kind of layer, several times in a row.
struct Run {
  LayerId layer;
  std::int64_t count;
};

struct OpGraph {
  IdVector<LayerId, Layer> layers;
  // In order of execution. What stands before the stack lives on the first stage (towers, then the
  // embedding), what stands after it on the last (the head); a pipeline divides `body` alone.
  std::vector<Run> front, body, back;
  LayerId embedding, head;
  std::int64_t batch, seq_len;  // one micro-batch: sequences, tokens a sequence
  std::int64_t hidden;
  bool tied_embeddings;  // head and embedding share one matrix

  std::int64_t tokens() const { return batch * seq_len; }
  std::int64_t depth() const;  // layers of the body
};

// How a pointwise operator on tensors that are split so is divided.
Parallel pointwise(Split split);

Work work_of(const Layer& layer, OpId op);

// Pairs of query and key that one head of one sequence attends to. Causal: every query sees
// itself by half and min(before it, window) in whole, so that queries = keys = L gives L^2 / 2, as
// papers count it, and a window w gives L w - w^2 / 2. Packed documents each count for themselves.
double attended_pairs(const Attention&);

// Matrix FLOPs of a shape, divided or not: 2 m n k, whatever the groups; 2 d a pair, head and
// product, d being head_dim for q k^T and value_dim for p v. The gradient of attention has two
// products for each one of the forward pass, and a fused kernel repeats q k^T: with equal d, 2.5
// times its forward (Dao 2023, arXiv 2307.08691).
Flop flop_of(OpKind, Pass, const Shape&);
// The same without what a fused kernel repeats.
Flop model_flop_of(OpKind, Pass, const Shape&);

}  // namespace orrery

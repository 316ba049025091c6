// How a training framework behaves: what it keeps, what it overlaps, what it costs the host.
#pragma once

#include <cstdint>
#include <string>

#include "catalog/fact.h"
#include "catalog/framework_rules.h"
#include "units/quantity.h"

namespace orrery {

enum class AttentionKernel { flash, early_flash, unfused };

struct Framework {
  std::string name, title;
  std::string rules_entry;  ///< of the catalog
  FrameworkRules rules;     ///< which the catalog reads

  /// What it does when the user says nothing.
  struct Defaults {
    bool sequence_parallel = false;  ///< where tp > 1
    std::int64_t zero = 0;
    std::string recompute = "none";
    AttentionKernel attention = AttentionKernel::flash;
    bool dropout = false;
    bool equal_chunks = true;           ///< cuts the layers into equal chunks only
    std::int64_t layers_per_chunk = 0;  ///< interleaves pipelines down to this; 0: never
  } defaults;

  /// Bytes a parameter, kept and on the wire (plan/lower.h says where each counts).
  struct PerParameter {
    Fact<double> weights, gradients, optimizer, reduce, gather;
    Fact<double> head_gradient;  ///< of the output matrix, beside the accumulated one
    Fact<double> accumulate;     ///< moved to add a micro-batch's gradient to the sum
    Fact<double> logit;          ///< a logit, kept in all
  } per_parameter;
  bool reshard_after_forward = true;         ///< ZeRO-3 gathers again for the backward pass
  bool holds_gathered_in_pipelines = false;  ///< ZeRO-3 with pp > 1 gathers once a step
  bool scatters_sends = false;               ///< tensor ranks each send a slice between stages
  bool shards_checkpoints = false;           ///< full recompute keeps its inputs divided by tp
  bool fuses_accumulation = false;           ///< into the products that give weight gradients
  bool overlaps_gradients = true;            ///< reduces buckets while the backward pass goes on
  Fact<Bytes> context;                       ///< held before the first tensor
  Fact<double> slack;                        ///< reserved over allocated, minus one
  bool gives_back = false;                   ///< the slack is cached blocks, freed before it fails

  /// Share of a collective's time that the compute stream sees.
  struct Exposed {
    Fact<double> tensor, context, expert, data, pipeline;
  } exposed;

  /// Mixture of experts.
  struct Experts {
    Fact<double> sixteen_bit, eight_bit;  ///< their products' rate over that of dense ones
    Fact<double> traffic;                 ///< bytes their memory-bound work moves over those needed
    bool once_per_node = false;  ///< a token travels once to each node that has experts for it
  } experts;

  Fact<double> quality;         ///< its matrix kernels' rate over the GPU's sustained one
  Fact<double> dequantise;      ///< bytes moved to bring a weight from 4 bits
  Fact<double> kept;            ///< bytes of activations kept over those needed
  Fact<double> traffic;         ///< bytes its memory-bound work moves over those needed
  Fact<Seconds> launch;         ///< host time a kernel
  Fact<Seconds> step_overhead;  ///< fixed, once a step
  Fact<Seconds> rank_latency;   ///< a collective's start, a rank, between nodes
  Fact<double> network_share;   ///< of the fabric's rate that its collectives reach
  Fact<double> growth;          ///< of the step, a doubling of GPUs beyond one node
};

Framework framework_from_json(const Json& json, const std::string& place);

}  // namespace orrery

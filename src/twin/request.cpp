#include <array>

#include "catalog/custom_model.h"
#include "core/error.h"
#include "core/text.h"
#include "core/yaml.h"
#include "twin/scenario.h"

namespace orrery {
namespace {

constexpr std::array keys = {
    RequestKey{"model", "model", "NAME|PATH", "catalog name, or a Hugging Face config.json"},
    RequestKey{"seq-len", "model", "N", "tokens a sequence (4096, or all the model takes)"},
    RequestKey{"gpu", "machine", "NAME", "GPU, by catalog name"},
    RequestKey{"gpus", "machine", "N", "GPUs in all (tp x pp x cp x dp)"},
    RequestKey{"gpus-per-node", "machine", "N", "GPUs used in each node (all that it holds)"},
    RequestKey{"node", "machine", "NAME", "server (the one that the GPU usually sits in)"},
    RequestKey{"fabric", "machine", "NAME", "network between nodes (the node's usual one)"},
    RequestKey{"oversubscription", "machine", "X", "of the fabric's core: 2 halves its bandwidth"},
    RequestKey{"power-cap", "machine", "W", "power limit of each GPU"},
    RequestKey{"price", "machine", "USD", "of one GPU for one hour (the catalog's)"},
    RequestKey{"global-batch", "job", "N", "sequences a step (4 Mi tokens)"},
    RequestKey{"micro-batch", "job", "N", "sequences a forward pass (1)"},
    RequestKey{"precision", "job", "fp32|tf32|bf16|fp16|fp8|auto", "of the linear layers (auto)"},
    RequestKey{"tokens", "job", "N", "of the whole run, as 15T or 300B: adds time, cost, energy"},
    RequestKey{"task", "job", "pretrain|sft|lora|qlora",
               "what is trained: all weights, or adapters beside frozen ones (pretrain)"},
    RequestKey{"optimizer", "job", "adam|adam-bf16|adam8bit|adafactor|muon|sgd",
               "8, 4, 2, 0, 4 or 4 bytes of state a parameter, and the master copy (adam)"},
    RequestKey{"lora-rank", "job", "N", "rank of the adapters (16)"},
    RequestKey{"lora-targets", "job", "attention|mlp|all", "matrices that have one (all)"},
    RequestKey{"train-embeddings", "job", "", "embedding and head too, beside frozen layers",
               ValueKind::flag},
    RequestKey{"freeze", "job", "PART,...",
               "parts that are not trained: language, vision, projector"},
    RequestKey{"packed", "job", "X", "texts in a sequence that do not see each other (1)"},
    RequestKey{"padding", "job", "X%", "share of a sequence that is not trained (0)"},
    RequestKey{"images", "job", "N", "a sequence, or clips or source texts (1)"},
    RequestKey{"expert-load", "job", "X", "tokens of the fullest rank over the even share (1)"},
    RequestKey{"capacity", "job", "X", "factor: each expert takes that many even shares"},
    RequestKey{"fp8-copies", "job", "none|weights|transposed",
               "fp8 weights kept beside the others: none, one, one and its transpose (none)"},
    RequestKey{"batch-ramp", "job", "START:STEP:TOKENS",
               "global batch grows from START by STEP over the first TOKENS of --tokens"},
    RequestKey{"framework", "job", "NAME", "whose overheads and overlaps to assume (nemo)"},
    RequestKey{"attention", "job", "flash|early-flash|unfused",
               "attention kernels (the framework's)"},
    RequestKey{"convention", "job", "NAME", "how model FLOPs are counted (full-attention)"},
    RequestKey{"tp", "strategy", "N", "tensor-parallel ranks (1)"},
    RequestKey{"pp", "strategy", "N", "pipeline stages (1)"},
    RequestKey{"vpp", "strategy", "N", "chunks of layers a stage (as the framework interleaves)"},
    RequestKey{"dp", "strategy", "N", "data-parallel ranks (gpus / (tp x pp x cp))"},
    RequestKey{"cp", "strategy", "N", "context-parallel ranks (1)"},
    RequestKey{"cp-kind", "strategy", "all-gather|ring|ulysses",
               "how context ranks share attention (all-gather)"},
    RequestKey{"ep", "strategy", "N", "expert-parallel ranks, within tp x cp x dp (1)"},
    RequestKey{"etp", "strategy", "N", "tensor-parallel ranks of each expert (1)"},
    RequestKey{"zero", "strategy", "0|1|2|3", "what data parallelism shards (the framework's)"},
    RequestKey{"shard-ranks", "strategy", "N", "ranks it shards over (all of dp x cp)"},
    RequestKey{"sequence-parallel", "strategy", "",
               "divide norms and residuals by tp; =false turns it off", ValueKind::flag},
    RequestKey{"recompute", "strategy", "none|selective|operators|full[:LAYERS]",
               "activations computed twice (the framework's)"},
    RequestKey{"offload", "strategy", "none|optimizer|parameters|activations",
               "what lies in host memory: optimizer state; that and weights; activations (none)"},
    RequestKey{"offload-to", "strategy", "cpu|nvme", "memory of the host, or its drives (cpu)"},
    RequestKey{"schedule", "strategy", "gpipe|1f1b|interleaved|zb-h1|zb-v|dualpipe",
               "order of micro-batches (interleaved if vpp > 1)"},
    RequestKey{"split", "strategy", "N,N,...", "layers of each chunk, in order (evenly)"},
    RequestKey{"first-stage-layers", "strategy", "N", "layers of the first stage (as the others)"},
    RequestKey{"last-stage-layers", "strategy", "N", "layers of the last stage (as the others)"},
};

// A scalar as the flag would have been typed.
std::string scalar_text(const Json& value, const FieldPlace& where) {
  if (value.is_string()) return value.as_string();
  if (value.is_bool() || value.is_number()) return value.dump();
  where.fail_expected("a number, a word or true or false", value);
}

}  // namespace

std::span<const RequestKey> request_keys() { return keys; }

std::string Request::place_of(const std::string& key) const {
  const auto elsewhere = places.find(key);
  const std::string& at = elsewhere == places.end() ? place : elsewhere->second;
  return at == command_line || at.empty() ? "--" + key : at + ": " + key;
}

Request request_from_json(const Json& json, const std::string& place) {
  const FieldPlace where{place, ""};
  if (!json.is_object()) {
    where.fail("a scenario is a list of keys and values", "write lines such as model: llama-3-8b");
  }
  Request request{.values = {}, .architecture = std::nullopt, .place = place};
  for (const auto& [key, value] : json.members()) {
    if (key == "custom") {
      request.architecture = custom_model(Fields(value, place, key));
    } else {
      request.values[key] = scalar_text(value, where.key(key));
    }
  }
  if (request.architecture && request.values.contains("model")) {
    where.key("model").fail("names a model beside the one under custom", "leave one out");
  }
  return request;
}

Request request_from_file(const std::string& path) {
  return request_from_json(read_json_or_yaml(path), path);
}

Request merged(Request file, const Request& flags) {
  for (const auto& [key, value] : flags.values) {
    file.values[key] = value;
    file.places[key] = flags.place;
  }
  if (flags.values.contains("model")) file.architecture.reset();
  if (flags.architecture) file.architecture = flags.architecture;
  if (file.place.empty()) file.place = flags.place;
  return file;
}

}  // namespace orrery

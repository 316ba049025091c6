#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "twin/resolver.h"

namespace orrery {
namespace {

constexpr double max_images = 4096;

bool has_projector(const Architecture& model) {
  return std::any_of(model.towers.begin(), model.towers.end(),
                     [](const Tower& tower) { return !tower.projector.empty(); });
}

}  // namespace

// Operators described by hand have no parts and no attention that a key could mean.
void Resolver::refuse_meaningless_of_custom() const {
  const Custom& custom = scenario_.model.custom;
  if (!custom) return;
  for (const char* key :
       {"lora-rank", "lora-targets", "freeze", "train-embeddings", "packed", "attention"}) {
    refuse(key, "means nothing of operators described by hand", "leave it out");
  }
  const Asked task = asked("task");
  if (task && task.text().ends_with("lora")) {
    task.fail("adapts matrices that a family names", "a custom model trains all its weights");
  }
  if (custom.trained) return;
  for (const char* key : {"task", "optimizer", "recompute"}) {
    refuse(key, "is of training, and custom says trained: false", "leave it out");
  }
}

void Resolver::task() {
  if (!scenario_.model.custom.trained) return;
  if (const Asked given = asked("task")) {
    scenario_.job.task = given.choice<Task>({{"pretrain", Task::pretrain},
                                             {"sft", Task::sft},
                                             {"lora", Task::lora},
                                             {"qlora", Task::qlora}});
  } else {
    assume("task", "pretrain", "all weights are trained, unless told so");
  }
  const Asked precision = asked("precision");
  if (precision && scenario_.job.task == Task::qlora && scenario_.precision == Precision::fp8) {
    precision.fail("is no format that 4-bit weights are brought to", "qlora multiplies in bf16");
  }
}

void Resolver::optimizer() {
  if (!scenario_.model.custom.trained) return;
  Optimizer& optimizer = scenario_.job.optimizer;
  if (const Asked given = asked("optimizer")) {
    optimizer = given.choice<Optimizer>({{"adam", Optimizer::adam},
                                         {"adamw", Optimizer::adam},
                                         {"adam-bf16", Optimizer::adam_bf16},
                                         {"adam8bit", Optimizer::adam8bit},
                                         {"adafactor", Optimizer::adafactor},
                                         {"muon", Optimizer::muon},
                                         {"sgd", Optimizer::sgd}});
  } else {
    assume("optimizer", "adam", "the usual one; its two moments are fp32");
  }
}

void Resolver::adapters() {
  Job& job = scenario_.job;
  if (job.task != Task::lora && job.task != Task::qlora) {
    const std::string rule = "is of adapters, and --task " + std::string(name_of(job.task)) +
                             " has none: all weights are trained";
    refuse("lora-rank", rule, "add --task lora, or leave it out");
    refuse("lora-targets", rule, "add --task lora, or leave it out");
    return;
  }
  job.lora_rank = whole_or("lora-rank", usual_lora_rank, 1 << 16, "a common rank");
  if (const Asked targets = asked("lora-targets")) {
    const int which = targets.choice<int>({{"attention", 1}, {"mlp", 2}, {"all", 3}});
    job.adapts_attention = which != 2;
    job.adapts_feed_forward = which != 1;
  } else {
    assume("lora-targets", "all", "every matrix of the layers, as QLoRA's paper found best");
  }
}

void Resolver::freezing() {
  Job& job = scenario_.job;
  const Architecture& model = scenario_.model;
  const bool adapted = job.lora_rank > 0, towers = !model.towers.empty();
  job.freezes_stack = adapted || !model.custom.trained;
  if (!model.custom.trained) return;
  job.freezes_towers = job.freezes_projector = adapted && towers;
  if (const Asked given = asked("freeze")) {
    job.freezes_towers = job.freezes_projector = false;
    for (const std::string& part : given.list()) {
      if (part == "language") {
        job.freezes_stack = true;
      } else if (part == "vision" && towers) {
        job.freezes_towers = true;
      } else if (part == "projector" && has_projector(model)) {
        job.freezes_projector = true;
      } else {
        given.fail("names " + in_quotes(part) + ", which is no part of " + model.name,
                   std::string("its parts are language") + (towers ? ", vision" : "") +
                       (has_projector(model) ? ", projector" : ""));
      }
    }
  }
  if (const Asked given = asked("train-embeddings")) {
    job.trains_embeddings = given.yes();
    if (job.trains_embeddings && !job.freezes_stack) {
      given.fail("means nothing here: the embeddings are trained with the rest", "leave it out");
    }
  }
  const bool tower_trained =
      towers && (!job.freezes_towers || (has_projector(model) && !job.freezes_projector));
  if (job.freezes_stack && !adapted && !job.trains_embeddings && !tower_trained) {
    asked("freeze").fail("leaves nothing to train", "freeze less, or add --task lora");
  }
}

void Resolver::sequences() {
  Job& job = scenario_.job;
  if (const Asked given = asked("packed")) {
    job.documents = given.number(1, static_cast<double>(scenario_.strategy.seq_len));
  }
  if (const Asked given = asked("padding")) job.padding = given.share();
  const Asked images = asked("images");
  if (scenario_.model.towers.empty()) {
    refuse("images", "counts what a tower sees, and " + scenario_.model.name + " has none",
           "leave it out");
  } else if (images) {
    job.images = images.number(0.001, max_images);
  } else {
    assume("images", "1", "one of each tower's inputs a sequence");
  }
  double seen = 0;  // tokens of a sequence that come from towers
  for (const Tower& tower : scenario_.model.towers) {
    seen += job.images * static_cast<double>(tower.tokens_out);
  }
  const std::int64_t length = scenario_.strategy.seq_len;
  if (seen > static_cast<double>(length)) {
    throw InputError(
        fmt::format("{:g} images bring {:.0f} tokens, more than a sequence of {} holds", job.images,
                    seen, length),
        "", fmt::format("give fewer --images, or --seq-len of at least {:.0f}", std::ceil(seen)),
        request_.place);
  }
}

void Resolver::experts() {
  Job& job = scenario_.job;
  const Asked load = asked("expert-load"), capacity = asked("capacity");
  if (scenario_.model.experts.count == 0) {
    const std::string rule = "is of experts, and " + scenario_.model.name + " has none";
    refuse("expert-load", rule, "leave it out");
    refuse("capacity", rule, "leave it out");
    return;
  }
  const auto most = static_cast<double>(scenario_.model.experts.count);
  if (load && capacity) {
    load.fail("and a capacity contradict each other: each expert takes what its capacity is",
              "give one of them");
  }
  if (capacity) {
    job.expert_load = capacity.number(0.1, most);
  } else if (load) {
    job.expert_load = load.number(1, most);
  } else {
    assume("expert-load", "1", "a balanced router; the fullest rank decides, so more is slower");
  }
}

void Resolver::fp8_copies() {
  const Asked given = asked("fp8-copies");
  if (!given) {
    if (scenario_.precision == Precision::fp8) {
      assume("fp8-copies", "none", "weights are cast anew at each use");
    }
    return;
  }
  scenario_.job.fp8_copies = given.choice<Fp8Copies>({{"none", Fp8Copies::none},
                                                      {"weights", Fp8Copies::weights},
                                                      {"transposed", Fp8Copies::transposed}});
  if (scenario_.job.fp8_copies != Fp8Copies::none && scenario_.precision != Precision::fp8) {
    given.fail("keeps fp8 copies of weights that are multiplied in " +
                   std::string(to_text(scenario_.precision)),
               "add --precision fp8, or leave it out");
  }
}

// "START:STEP:TOKENS".
void Resolver::batch_ramp() {
  const Asked given = asked("batch-ramp");
  if (!given) return;
  const std::string& text = given.text();
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) {
    given.fail("is not START:STEP:TOKENS", "give one such as 32:32:10B");
  }
  const auto part = [&](std::size_t from, std::size_t to) {
    Request one = request_;
    one.values["batch-ramp"] = text.substr(from, to - from);
    return Asked(one, "batch-ramp").whole(1, max_batch);
  };
  const std::optional<Tokens> tokens = token_count(std::string_view(text).substr(second + 1));
  if (!tokens) given.fail("does not end with a number of tokens", "give one such as 32:32:10B");
  const BatchRamp ramp = {part(0, first), part(first + 1, second), *tokens};
  const std::int64_t goal = scenario_.strategy.global_batch;
  if (ramp.start > goal || (goal - ramp.start) % ramp.step != 0) {
    given.fail(fmt::format("does not reach the global batch of {} in whole steps", goal),
               fmt::format("start below it, and let the step divide the difference"));
  }
  scenario_.job.ramp = ramp;
  if (!asked("tokens")) {
    given.fail("acts on the time of a whole run", "add --tokens, such as --tokens 300B");
  }
}

void Resolver::job() {
  refuse_meaningless_of_custom();
  task();
  optimizer();
  adapters();
  freezing();
  sequences();
  experts();
  fp8_copies();
}

}  // namespace orrery

// One translation of a verl config under way.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "compat/draft/draft.hpp"
#include "compat/draft/foreign.hpp"

namespace hexad::compat::verl {

inline const std::string kActor = "actor_rollout_ref.actor.";
inline const std::string kRollout = "actor_rollout_ref.rollout.";
inline const std::string kModel = "actor_rollout_ref.model.";

struct Pass {
  Foreign& file;
  Draft out = {};
  int64_t gpus = 1;                   // of the run
  bool megatron = false;              // the strategy; else one of FSDP's
  int64_t length_unit = 1;            // what the layout cuts a sequence into
  std::optional<int64_t> steps = {};  // of the whole run, where trainer.total_training_steps tells
};

void translate_batches(Pass& pass);     // prompts, samples of an optimizer step, micro-batches
void translate_advantages(Pass& pass);  // the estimator, KL in rewards
void translate_loss(Pass& pass);        // clipping, KL loss, how tokens are summed up
void translate_strategy(Pass& pass);    // FSDP or Megatron, and its layout
void translate_optimizer(Pass& pass);   // with its schedule
void translate_rollout(Pass& pass);     // the generator and its sampling
void translate_data(Pass& pass);        // rows and rewards
void translate_trainer(Pass& pass);     // how long, validation, checkpoints, logs, machines

}  // namespace hexad::compat::verl

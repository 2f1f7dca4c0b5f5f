// One translation of TRL's arguments under way.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "compat/draft/draft.hpp"
#include "compat/draft/foreign.hpp"
#include "compat/trl/defaults.hpp"

namespace hexad::compat::trl {

struct Pass {
  Foreign& args;
  Draft out = {};
  Trainer trainer = Trainer::grpo;
  std::string block = "grpo";  // ours of the trainer
  int64_t processes = 1;
  double optimizer_steps = 1;         // of TRL's in one step of ours
  std::optional<int64_t> steps = {};  // of ours in the whole run, where max_steps tells

  // Steps of ours that so many optimizer steps come to; at least 1.
  int64_t steps_of(double optimizer_steps_of_trl) const;
  // The same of a setting that is a number of optimizer steps or, below 1, a share of max_steps; nothing, and left out,
  // where it is a share and max_steps is not given.
  std::optional<int64_t> period(const std::string& key);
};

// Factors that come to more than 2^53 are an Error(config) about `key`.
int64_t product(const Foreign& args, const std::string& key, std::initializer_list<int64_t> factors);

void translate_generation_batch(Pass& pass);  // grpo: prompts, samples and optimizer steps of a step
void translate_batch(Pass& pass);             // the others
void translate_loss(Pass& pass);              // grpo: loss_fn, advantages
void translate_sampling(Pass& pass);          // grpo: policy.generation
void translate_supervised(Pass& pass);        // sft, dpo, rm
void translate_model(Pass& pass);             // policy.model_name, precision, memory
void translate_steps(Pass& pass);             // how long, when it validates and saves, and where to
void translate_optimizer(Pass& pass);         // with its schedule
void translate_data(Pass& pass);              // data
void translate_rewards(Pass& pass);           // grpo: env

}  // namespace hexad::compat::trl

// Training on examples: SFT, DPO and reward models.
#pragma once
#include "core/algorithm/run/training.hpp"
#include "core/algorithm/supervised/examples.hpp"

namespace hexad::algorithm {

// The parts of a supervised run. Borrowed; run/train_run.cpp makes them.
struct Supervised : Training {
  Examples& examples;
};

// Names that validation may tell of: those of NeMo-RL's validate_one_dataset. Not of GRPO.
std::vector<std::string> validation_metrics(config::Algorithm algorithm);

// Trains until max_num_steps, the end of the data or an interruption. Throws Error.
//
// SFT, supervised fine-tuning: the likelihood of the assistant's tokens. DPO, direct preference optimization (Rafailov
// et al. 2023). RM, a reward model of pairwise preferences (Bradley and Terry 1952; Ouyang et al. 2022).
Ending train_supervised(Supervised& run);

}  // namespace hexad::algorithm

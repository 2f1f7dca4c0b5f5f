// Training on examples: what SFT, DPO and reward models have in common. Each algorithm is what it adds to a batch before
// the loss, and what it makes of validation.
#pragma once
#include "core/algorithm/examples.hpp"
#include "core/algorithm/run/book.hpp"

namespace hexad::algorithm {

// The parts of a supervised run. Borrowed; train_run.cpp makes them.
struct Supervised : Run {
  Examples& examples;
};

struct Objective {
  // Adds to the batch what the loss needs beside the examples; empty: nothing.
  std::function<void(data::Batch& batch)> prepare;
  // Makes one result of those of the validation batches, of which there is at least one.
  std::function<Validation(const std::vector<Metrics>& batches)> summarize;
};

// Trains until max_num_steps, the end of the data or an interruption. Throws Error.
Ending supervised_train(Supervised& run, const Objective& objective);

// Supervised fine-tuning: the likelihood of the assistant's tokens.
Ending sft_train(Supervised& run);
// Direct preference optimization (Rafailov et al. 2023).
Ending dpo_train(Supervised& run);
// A reward model of pairwise preferences (Bradley and Terry 1952; Ouyang et al. 2022).
Ending rm_train(Supervised& run);

// Of preferences: the means over the valid pairs of all batches, as NeMo-RL's validate_one_dataset.
Validation over_pairs(const std::vector<Metrics>& batches);

}  // namespace hexad::algorithm

// What TRL takes for a setting that nobody has made.
#pragma once
#include <string>

namespace hexad::compat::trl {

enum class Trainer { grpo, sft, dpo, reward };

// A YAML map of arguments: TrainingArguments, the trainer's own, ModelConfig and the arguments of TRL's scripts.
std::string defaults_of(Trainer trainer);

}  // namespace hexad::compat::trl

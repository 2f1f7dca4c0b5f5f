// TRL's arguments, written as a configuration of Hexad's: `hexad config from-trl`.
#pragma once
#include <cstdint>
#include <optional>

#include "compat/draft/draft.hpp"
#include "compat/trl/defaults.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::compat {

struct TrlOptions {
  std::optional<trl::Trainer> trainer;  // nothing: the keys tell
  std::optional<int64_t> processes;     // of `accelerate launch`; nothing: the file tells, or 1
};

// `args` is to_dict() of a GRPOConfig, SFTConfig, DPOConfig or RewardConfig, or the YAML of TRL's command line, with
// names of model and data set in it (model_name_or_path, dataset_name). Throws Error(config) for a key of a wrong type,
// sizes that TRL refuses too, and where it cannot be told whose arguments they are.
Draft from_trl(yaml::Node args, const TrlOptions& options);

// "grpo", "sft", "dpo" or "reward", as --trainer has it; nothing for another word.
std::optional<trl::Trainer> trl_trainer(const std::string& name);

}  // namespace hexad::compat

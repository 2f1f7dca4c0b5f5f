// What verl takes for a setting that nobody has made.
#pragma once

namespace hexad::compat::verl {

// A YAML map: those keys of ppo_trainer.yaml, and of ppo_megatron_trainer.yaml below `megatron`, that are not null,
// false or empty there.
extern const char* const kDefaults;

}  // namespace hexad::compat::verl

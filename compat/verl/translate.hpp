// verl's configuration, written as one of Hexad's: `hexad config from-verl`.
#pragma once
#include "compat/draft/draft.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::compat {

// `file` is a config of verl's main_ppo (ppo_trainer, ppo_megatron_trainer), whole or the keys that differ from its
// defaults. Throws Error(config) for a key of a wrong type and sizes that verl refuses too.
Draft from_verl(yaml::Node file);

}  // namespace hexad::compat

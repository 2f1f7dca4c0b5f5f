// ROLL's configuration form (RLVR and DPO pipelines), translated to NeMo-RL's keys.
#pragma once
#include <optional>
#include <string>

#include "core/config/compat.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

// True if the top level is ROLL's: roles such as actor_train, and none of NeMo-RL's blocks.
bool is_roll(const yaml::Node& root);

// `file` holds the interpolations as text; overrides of ROLL's keys are applied already. Values keep their places, so
// that what is said later about the translation names file:line:column too. Keys below `hexad` are NeMo-RL's and win.
Translation translate(yaml::Node file);

// Throws Error(config) for a ROLL file of a pipeline that is not translated. Its parents may hold what no file here may
// (keys that are numbers) or knows (Hydra's ${now:...}), so this looks at the file alone.
void refuse_other_pipeline(const yaml::Node& file);

// True if an override of this key is of the ROLL file, and not of what it comes to.
bool is_roll_key(const std::string& path);

// Of the DeepSpeed presets that ROLL's examples inherit from (`../config/deepspeed_zero3@_here_`) the map
// {deepspeed_zero3: ...} for the last part of the name, or nothing if it is none of them.
std::optional<yaml::Node> deepspeed_preset(const std::string& name);

}  // namespace hexad::config::roll

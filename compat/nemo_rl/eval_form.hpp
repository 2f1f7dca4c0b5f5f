// NeMo-RL's configuration form of an evaluation (examples/configs/evals/*.yaml), brought into the form of a run.
#pragma once
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::compat {

// True if the top level has `eval` and `generation`.
bool is_eval_form(const yaml::Node& root);

// True if an override of this key is of such a file, and not of what it comes to.
bool is_eval_form_key(const std::string& path);

// Puts `generation` and `tokenizer` below `policy`, its model_name at policy.model_name, and takes the context and the
// precision from vllm_cfg where `policy` does not say them; keys of NeMo-RL 0.3 get their present names. References are
// resolved. Values keep their places.
yaml::Node from_eval_form(yaml::Node file);

}  // namespace hexad::compat

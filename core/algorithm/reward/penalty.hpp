// reward_penalties: faults of a response that make its reward 0, whatever its environment gave. Names of NeMo-RL, which
// has them for NeMo-Gym's samples alone (experience/rollouts.py:apply_reward_penalties).
#pragma once
#include "core/config/typed/algorithm_config.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::algorithm {

struct Faults {
  bool duplicated_reasoning = false;  // the answer is what was reasoned, word for word
  bool empty_final_answer = false;    // nothing behind the reasoning
  bool malformed_think_tag = false;
};

// Looks at one response, of several turns the newest. `prompt`: rendered, with the tags that a chat template has
// written; `response`: decoded with special tokens, without the one that ended it. What stands before the first closing
// tag is reasoning, the rest the answer; where the prompt leaves the opening tag open and none closes it, all is
// reasoning. Tags are well-formed
//   where the prompt has none:            without any, or with one pair around what the response begins with;
//   where the prompt's opening tag waits: with one closing tag and no opening one;
//   where the prompt has closed them all: without any.
using Tags = std::pair<std::string, std::string>;  // opening, closing
Faults faults_of(const Tags& tags, std::string_view prompt, std::string_view response);

// Sets rewards of samples that have a fault that is asked for to 0, parts of rewards too. Adds to the metrics the share
// of samples with each: reasoning_equal_to_final_answer_rate, empty_final_answer_rate, unwanted_token_rate,
// malformed_think_tag_rate.
void penalize(const config::RewardPenaltiesConfig& config, const rollout::ModelText& text, rollout::Rollout& rollout);

}  // namespace hexad::algorithm

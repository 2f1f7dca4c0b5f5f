// What environments say of conversations.
#pragma once
#include "core/rollout/conversation.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::rollout {

// Has the newest response of every conversation scored by the environment that its prompt names, and adds rewards,
// parts of rewards, states and replies to the conversations. One that is invalid once stays so, and has ended. Returns
// what else the environments report. Any thread.
Reported score(std::span<Conversation* const> conversations, const Environments& environments, int64_t step);

// Throws Error(worker) with the first reason if all of them are invalid: there is nothing to learn from.
void check_any_valid(std::span<const Conversation> conversations, int64_t step);

// Metrics of whole conversations, `samples` of every prompt next to each other. As in NeMo-RL, accuracy and what is
// told of right ones go by the part `correctness` of the reward where there is one (math_multi_reward).
std::map<std::string, double> metrics_of(std::span<const Conversation> conversations, int64_t samples);

}  // namespace hexad::rollout

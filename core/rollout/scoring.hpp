// What environments say of conversations.
#pragma once
#include "core/rollout/conversation.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::rollout {

struct Verdicts {
  std::vector<std::optional<environment::Reply>> replies;  // [conversations]; nothing: it has ended
  std::map<std::string, double> metrics;                   // what else the environments report
};

// Has the newest response of every conversation scored by the environment that its prompt names, and adds rewards, parts
// of rewards and states to the conversations. One that is invalid once stays so, and has ended.
Verdicts score(std::span<Conversation* const> conversations, const Environments& environments, int64_t step);

// Throws Error(worker) with the first reason if all of them are invalid: there is nothing to learn from.
void check_any_valid(std::span<const Conversation> conversations, int64_t step);

// Metrics of whole conversations, `samples` of every prompt next to each other.
std::map<std::string, double> metrics_of(std::span<const Conversation> conversations, int64_t samples);

}  // namespace hexad::rollout

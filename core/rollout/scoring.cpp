#include "core/rollout/scoring.hpp"

#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad::rollout {
namespace {

environment::Sample newest_of(const Conversation& conversation, std::span<const int64_t> tokens) {
  environment::Sample sample;
  sample.prompt = conversation.prompt->text;
  sample.response = conversation.response;
  sample.ground_truth = conversation.prompt->answer;
  sample.prompt_tokens = conversation.response_at;
  sample.response_tokens = static_cast<int64_t>(tokens.size()) - conversation.response_at;
  sample.truncated = conversation.cut_off;
  sample.metadata = &conversation.prompt->metadata;
  sample.tokens = tokens;
  sample.group = static_cast<uint64_t>(conversation.group);
  sample.turn = conversation.turns - 1;
  if (!conversation.state.is_null()) sample.state = &conversation.state;
  return sample;
}

// Those of one environment.
void score_part(const environment::Environment& environment, std::span<Conversation* const> all,
                const std::vector<size_t>& part, int64_t step, Reported& reported) {
  std::vector<std::vector<int64_t>> tokens;
  std::vector<environment::Sample> samples;
  tokens.reserve(part.size()), samples.reserve(part.size());
  for (const size_t i : part) tokens.emplace_back(all[i]->tokens.begin(), all[i]->tokens.end());
  for (size_t k = 0; k < part.size(); ++k) samples.push_back(newest_of(*all[part[k]], tokens[k]));
  environment::Scores scores = environment.score(samples, step);
  for (size_t k = 0; k < part.size(); ++k) {
    Conversation& conversation = *all[part[k]];
    conversation.reward += scores.rewards[k];
    conversation.invalid |= scores.invalid[k] != 0;
    if (scores.invalid[k] && !scores.why_invalid.empty())
      conversation.why_invalid = fmt::format("env.{}: {}", conversation.prompt->env_name, one_line(scores.why_invalid));
    for (const auto& [name, values] : scores.components) conversation.components[name] += values[k];
    if (!scores.answers.empty()) conversation.answer = std::move(scores.answers[k]);
    if (!scores.states.empty()) conversation.state = std::move(scores.states[k]);
    conversation.reply.reset();
    if (!scores.replies.empty() && !conversation.invalid) conversation.reply = std::move(scores.replies[k]);
  }
  reported.add(scores.metrics, static_cast<int64_t>(part.size()));
}

void add_parts_of_rewards(std::span<const Conversation> conversations, std::map<std::string, double>& metrics) {
  std::map<std::string, double> sums;
  double valid = 0;
  for (const Conversation& conversation : conversations) {
    for (const auto& [name, value] : conversation.components) sums[name] += conversation.invalid ? 0 : value;
    valid += !conversation.invalid;
  }
  for (const auto& [name, sum] : sums) metrics["reward/" + name] = valid > 0 ? sum / valid : 0;
}

void add_lengths(std::span<const Conversation> conversations, std::map<std::string, double>& metrics) {
  double prompts = 0, written = 0, total = 0, longest = 0, truncated = 0, natural = 0, turns = 0, most = 0;
  for (const Conversation& conversation : conversations) {
    prompts += static_cast<double>(conversation.prompt_tokens);
    written += static_cast<double>(conversation.written_tokens);
    total += static_cast<double>(conversation.tokens.size());
    longest = std::max(longest, static_cast<double>(conversation.written_tokens));
    turns += static_cast<double>(conversation.turns);
    most = std::max(most, static_cast<double>(conversation.turns));
    truncated += conversation.truncated;
    natural += !conversation.truncated && conversation.ended;
  }
  const auto rows = static_cast<double>(conversations.size());
  metrics["total_turns"] = turns;
  metrics["avg_turns_per_sample"] = turns / rows;
  metrics["max_turns_per_sample"] = most;
  metrics["truncation_rate"] = truncated / rows;
  metrics["natural_termination_rate"] = natural / rows;
  metrics["max_turns_reached_rate"] = 1 - (truncated + natural) / rows;
  metrics["mean_total_tokens_per_sample"] = total / rows;
  metrics["mean_gen_tokens_per_sample"] = written / rows;
  metrics["mean_env_tokens_per_sample"] = (total - prompts - written) / rows;
  metrics["max_gen_tokens_per_sample"] = longest;
  metrics["mean_prompt_length"] = prompts / rows;
  metrics["total_num_tokens"] = total;
}

}  // namespace

Reported score(std::span<Conversation* const> conversations, const Environments& environments, int64_t step) {
  Reported reported;
  std::map<std::string, std::vector<size_t>> parts;
  for (size_t i = 0; i < conversations.size(); ++i) parts[conversations[i]->prompt->env_name].push_back(i);
  for (const auto& [name, part] : parts) score_part(*environments.at(name), conversations, part, step, reported);
  return reported;
}

void check_any_valid(std::span<const Conversation> conversations, int64_t step) {
  std::string why;
  for (const Conversation& conversation : conversations) {
    if (!conversation.invalid) return;
    if (why.empty()) why = conversation.why_invalid;
  }
  if (conversations.empty()) return;
  fail(ErrorKind::worker,
       "rewards: not one of the {} samples of step {} could be scored, so that there is nothing to learn from. The "
       "first reason: {}",
       conversations.size(), step, why.empty() ? "their environment gave none (see its lines in the log)" : why);
}

std::map<std::string, double> metrics_of(std::span<const Conversation> conversations, int64_t samples) {
  std::vector<environment::Sample> all;
  environment::Scores scores;
  for (const Conversation& conversation : conversations) {
    environment::Sample sample;
    sample.prompt_tokens = conversation.prompt_tokens;
    sample.response_tokens = conversation.written_tokens;
    sample.truncated = conversation.truncated;
    all.push_back(sample);
    const auto correct = conversation.components.find("correctness");
    scores.rewards.push_back(correct != conversation.components.end() ? correct->second : conversation.reward);
    scores.invalid.push_back(conversation.invalid);
  }
  std::map<std::string, double> metrics = environment::environment_metrics(all, scores, samples);
  add_parts_of_rewards(conversations, metrics);
  add_lengths(conversations, metrics);
  return metrics;
}

}  // namespace hexad::rollout

#include "core/rollout/rollout.hpp"

#include <chrono>

#include "core/rollout/scoring.hpp"
#include "core/rollout/turns.hpp"

namespace hexad::rollout {

using Clock = std::chrono::steady_clock;

Environments make_environments(const config::EnvConfig& config, const std::vector<std::string>& names,
                               const environment::Services& services) {
  Environments environments;
  for (const std::string& name : names) {
    if (environments.contains(name)) continue;
    const auto found = config.find(name);
    const auto section = found == config.end() ? nlohmann::ordered_json::object() : found->second;
    environments[name] = environment::make(name, section, services);
  }
  return environments;
}

Rollout rollout_of(std::span<const Conversation> conversations, const data::Batch& columns, int64_t samples,
                   int64_t step, const Reported& reported) {
  check_any_valid(conversations, step);
  std::vector<int64_t> lengths, prompt_lengths, ids;
  std::vector<float> mask, logprobs, sample_mask, rewards;
  std::vector<uint8_t> truncated, invalid;
  Rollout rollout;
  for (size_t i = 0; i < conversations.size(); ++i) {
    const Conversation& one = conversations[i];
    lengths.push_back(static_cast<int64_t>(one.tokens.size()));
    prompt_lengths.push_back(one.prompt_tokens);
    ids.insert(ids.end(), one.tokens.begin(), one.tokens.end());
    mask.insert(mask.end(), one.mask.begin(), one.mask.end());
    logprobs.insert(logprobs.end(), one.logprobs.begin(), one.logprobs.end());
    sample_mask.push_back(one.invalid ? 0 : one.prompt->loss_multiplier);
    rewards.push_back(one.reward);
    truncated.push_back(one.truncated), invalid.push_back(one.invalid);
    for (const auto& [name, value] : one.components) {
      rollout.components[name].resize(conversations.size());
      rollout.components[name][i] = value;
    }
    rollout.responses.push_back(one.text);
    rollout.prompts.push_back(one.prompt);
    rollout.answers.push_back(one.answer);
    rollout.why_invalid.push_back(one.why_invalid);
  }
  rollout.batch = data::Batch::of_lengths(lengths);
  rollout.batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  rollout.batch.set("token_mask", data::Tensor::of(mask), data::Axis::token);
  rollout.batch.set("generation_logprobs", data::Tensor::of(logprobs), data::Axis::token);
  rollout.batch.set("prompt_length", data::Tensor::of(prompt_lengths), data::Axis::sample);
  rollout.batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
  rollout.batch.set("rewards", data::Tensor::of(rewards), data::Axis::sample);
  rollout.batch.set("truncated", data::Tensor::of(truncated), data::Axis::sample);
  rollout.batch.set("invalid", data::Tensor::of(invalid), data::Axis::sample);
  for (const auto& [name, column] : columns.columns()) rollout.batch.set(name, column.tensor, column.axis);
  rollout.metrics = metrics_of(conversations, samples);
  rollout.reported = reported;
  return rollout;
}

Rollout run_rollout(Generation& generation, const Environments& environments, const ModelText& text,
                    const std::vector<data::SharedDatum>& prompts, const Plan& plan) {
  const auto all = static_cast<int64_t>(prompts.size());
  const int64_t at_once = plan.at_once > 0 ? plan.at_once : std::max<int64_t>(all, 1);
  std::vector<Conversation> conversations;
  std::vector<data::Batch> columns;
  Reported reported;
  plugin::MetricSum metrics;  // of generators
  std::chrono::duration<double> waited{0};
  for (int64_t first = 0; first == 0 || first < all; first += at_once) {
    Turns turns({prompts.begin() + first, prompts.begin() + std::min(first + at_once, all)}, plan, plan.first + first);
    for (auto requests = turns.requests(plan); !requests.empty(); requests = turns.requests(plan)) {
      const data::Batch completions = generation.generate(requests, plan.sampling);
      turns.add_responses(completions, generation.take_columns(), text);
      const auto scoring = Clock::now();
      reported.add(score(turns.newest(), environments, plan.step));
      waited += Clock::now() - scoring;
      turns.add_replies(plan, text);
      metrics.add(generation.metrics());
    }
    columns.push_back(turns.columns());
    std::ranges::move(turns.conversations(), std::back_inserter(conversations));
  }
  Rollout rollout = rollout_of(conversations, columns.size() == 1 ? columns[0] : data::Batch::concat(columns),
                               plan.samples, plan.step, reported);
  rollout.of_generators = metrics.values();
  rollout.environment_seconds = waited.count();
  return rollout;
}

}  // namespace hexad::rollout

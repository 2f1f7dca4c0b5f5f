#include "core/algorithm/grpo/flat_rewards.hpp"

#include <algorithm>

#include "core/algorithm/reward/reward.hpp"
#include "lib/base/json.hpp"

namespace hexad::algorithm {
namespace {

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// In quotes, on one line; of a long text what it begins and ends with.
std::string quoted(const std::string& text) {
  constexpr size_t kBegin = 80, kEnd = 160;
  if (text.size() <= kBegin + kEnd) return json_text(nlohmann::ordered_json(text));
  size_t begin = kBegin, end = text.size() - kEnd;
  while (begin > 0 && continues_a_character(text[begin])) --begin;
  while (end < text.size() && continues_a_character(text[end])) ++end;
  return json_text(nlohmann::ordered_json(text.substr(0, begin) + " ... " + text.substr(end)));
}

// Why no sample has an advantage, and what there is to look at.
std::string explained(const rollout::Rollout& rollout) {
  const data::Batch& batch = rollout.batch;
  const auto truncated = batch.at("truncated").span<uint8_t>();
  const std::vector<float> training = voters(batch, /*filtered_too=*/false);
  const auto row = std::max_element(training.begin(), training.end()) - training.begin();
  const std::string sample = judged_sample(rollout, row);
  if (training.at(static_cast<size_t>(row)) == 0)
    return fmt::format(
        "no sample is in the loss ({} of {} were cut off at policy.generation.max_new_tokens), so that nothing is "
        "learnt. For example: {}. If answers need more room, raise policy.generation.max_new_tokens; "
        "grpo.overlong_filtering and grpo.seq_logprob_error_threshold take samples out",
        std::ranges::count(truncated, 1), batch.size(), sample);
  return fmt::format(
      "the rewards of each prompt's samples are all equal, so that no sample has an advantage and rewards teach "
      "nothing. For example: {}. If that verdict is wrong, look at env.{} and at the column of answers (output_key of "
      "the dataset); if it is right, the task is too hard or too easy: take other prompts, more samples of each "
      "(grpo.num_generations_per_prompt), or a reward that tells better answers from worse ones",
      sample, rollout.prompts[static_cast<size_t>(row)]->env_name);
}

}  // namespace

std::string judged_sample(const rollout::Rollout& rollout, int64_t row) {
  const auto at = static_cast<size_t>(row);
  const data::Datum& prompt = *rollout.prompts[at];
  const std::optional<std::string>& answer = rollout.answers[at];
  return fmt::format("prompt {}, response {}, expected answer {}{}, reward {:g}", quoted(prompt.text),
                     quoted(rollout.responses[at]), prompt.answer.empty() ? "none" : quoted(prompt.answer),
                     answer ? ", read as " + quoted(*answer) : "", rollout.batch.row<float>("rewards", row)[0]);
}

std::optional<std::string> FlatRewards::look(const rollout::Rollout& rollout, const telemetry::Metrics& metrics,
                                             int64_t step) {
  const bool flat = metrics.at("advantages/max") == 0 && metrics.at("advantages/min") == 0;
  steps_ = flat ? steps_ + 1 : 0;
  if (steps_ != kSteps) return std::nullopt;
  return fmt::format("steps {} to {}: {}", step - kSteps + 1, step, explained(rollout));
}

}  // namespace hexad::algorithm

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

bool has_advantage(const data::Batch& batch, int64_t row) {
  return batch.row<float>("sample_mask", row)[0] != 0 &&
         std::ranges::any_of(batch.row<float>("advantages", row), [](float each) { return each != 0; });
}

// Why none of these samples has an advantage, and what there is to look at.
std::string explained(const rollout::Rollout& rollout, const std::vector<int64_t>& rows) {
  const auto truncated = rollout.batch.at("truncated").span<uint8_t>();
  const std::vector<float> training = voters(rollout.batch, /*filtered_too=*/false);
  const int64_t row = *std::ranges::max_element(rows, {}, [&](int64_t each) { return training[each]; });
  const std::string sample = judged_sample(rollout, row);
  if (training[row] == 0)
    return fmt::format(
        "no sample is in the loss ({} of {} were cut off at policy.generation.max_new_tokens), so that nothing is "
        "learnt. For example: {}. If answers need more room, raise policy.generation.max_new_tokens; "
        "grpo.overlong_filtering and grpo.seq_logprob_error_threshold take samples out (docs/metrics.md)",
        std::ranges::count(rows, 1, [&](int64_t each) { return truncated[each]; }), rows.size(), sample);
  return fmt::format(
      "the rewards of each prompt's samples are all equal, so that no sample has an advantage and rewards teach "
      "nothing. For example: {}. If that verdict is wrong, look at env.{} and at the column of answers (output_key of "
      "the dataset); if it is right, the task is too hard or too easy: take other prompts, more samples of each "
      "(grpo.num_generations_per_prompt), or a reward that tells better answers from worse ones (docs/metrics.md)",
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

std::vector<std::string> FlatRewards::look(const rollout::Rollout& rollout, int64_t step) {
  const data::Batch& batch = rollout.batch;
  std::map<std::string, std::vector<int64_t>> rows_of;
  for (int64_t row = 0; row < batch.size(); ++row) rows_of[rollout.prompts[row]->env_name].push_back(row);
  std::vector<std::string> lines;
  for (const auto& [name, rows] : rows_of) {
    const bool flat = std::ranges::none_of(rows, [&](int64_t row) { return has_advantage(batch, row); });
    const auto [begin, before] = streaks_[name];
    const int64_t samples = flat ? before + std::ssize(rows) : 0, enough = kSteps * batch.size();
    streaks_[name] = {before > 0 ? begin : step, samples};
    if (before < enough && samples >= enough)
      lines.push_back(fmt::format("steps {} to {}{}: {}", before > 0 ? begin : step, step,
                                  rows_of.size() > 1 ? ", samples of env." + name : "", explained(rollout, rows)));
  }
  return lines;
}

}  // namespace hexad::algorithm

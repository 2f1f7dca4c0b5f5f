#include "core/algorithm/reward/penalty.hpp"

#include <algorithm>

#include "lib/base/text.hpp"

namespace hexad::algorithm {
namespace {

int64_t count(std::string_view text, std::string_view tag) {
  int64_t found = 0;
  for (size_t at = text.find(tag); at != text.npos; at = text.find(tag, at + tag.size())) ++found;
  return found;
}

// Opening tags of a text less closing ones.
int64_t left_open(std::string_view text, const Tags& tags) {
  return count(text, tags.first) - count(text, tags.second);
}

struct Parts {
  std::string_view reasoning, answer;
};

Parts split(std::string_view response, const Tags& tags, bool waits) {
  const auto& [open, close] = tags;
  const size_t end = response.find(close);
  if (end == response.npos) return waits ? Parts{response, {}} : Parts{{}, response};
  std::string_view reasoning = trimmed(response.substr(0, end));
  if (reasoning.starts_with(open)) reasoning.remove_prefix(open.size());
  return {reasoning, response.substr(end + close.size())};
}

bool well_formed(std::string_view prompt, std::string_view response, const Tags& tags) {
  const int64_t waiting = left_open(prompt, tags), opened = count(response, tags.first),
                closed = count(response, tags.second);
  if (waiting == 1) return opened == 0 && closed == 1;
  if (waiting != 0) return false;
  if (opened == 0 && closed == 0) return true;
  return count(prompt, tags.first) == 0 && opened == 1 && closed == 1 && trimmed(response).starts_with(tags.first);
}

// What stands before a sample's newest response, and the response.
std::pair<std::span<const int64_t>, std::span<const int64_t>> newest_response(const data::Batch& batch, int64_t row) {
  const auto tokens = batch.row<int64_t>("input_ids", row);
  const auto mask = batch.row<float>("token_mask", row);
  size_t begin = tokens.size();
  while (begin > 0 && mask[begin - 1] != 0) --begin;
  return {tokens.first(begin), tokens.subspan(begin)};
}

// Without the token that ends a response.
std::string text_of(const rollout::ModelText& text, std::span<const int64_t> tokens) {
  while (!tokens.empty() && std::find(text.eos_ids.begin(), text.eos_ids.end(), tokens.back()) != text.eos_ids.end())
    tokens = tokens.first(tokens.size() - 1);
  return text.tokenizer->decode(std::vector<int32_t>(tokens.begin(), tokens.end()), /*skip_special_tokens=*/false);
}

Tags tags_of(const config::RewardPenaltiesConfig& config, const rollout::ModelText& text) {
  const auto one = [&](std::optional<int64_t> token, const std::string& otherwise) {
    if (!token) return otherwise;
    return text.tokenizer->decode(std::vector{static_cast<int32_t>(*token)}, /*skip_special_tokens=*/false);
  };
  return {one(config.think_open, config.thinking_tags.at(0)), one(config.think_close, config.thinking_tags.at(1))};
}

bool has_any(std::span<const int64_t> tokens, const std::vector<int64_t>& unwanted) {
  return std::find_first_of(tokens.begin(), tokens.end(), unwanted.begin(), unwanted.end()) != tokens.end();
}

}  // namespace

Faults faults_of(const Tags& tags, std::string_view prompt, std::string_view response) {
  const Parts parts = split(response, tags, left_open(prompt, tags) > 0);
  const std::string_view reasoning = trimmed(parts.reasoning), answer = trimmed(parts.answer);
  return {!reasoning.empty() && reasoning == answer, answer.empty(), !well_formed(prompt, response, tags)};
}

void penalize(const config::RewardPenaltiesConfig& config, const rollout::ModelText& text, rollout::Rollout& rollout) {
  const bool looks_at_text =
      config.penalize_duplicated_reasoning || config.penalize_empty_final_answer || config.penalize_malformed_think_tag;
  if (!looks_at_text && !config.penalize_unwanted_tokens) return;
  const Tags tags = tags_of(config, text);
  const int64_t rows = rollout.batch.size();
  const auto rewards = rollout.batch.at("rewards").span<float>();
  std::map<std::string, int64_t> found;
  for (int64_t i = 0; i < rows; ++i) {
    const auto [before, tokens] = newest_response(rollout.batch, i);
    const Faults faults = looks_at_text ? faults_of(tags, text_of(text, before), text_of(text, tokens)) : Faults{};
    bool any = false;
    const auto look = [&](bool is_asked, bool is_there, const char* metric) {
      if (!is_asked) return;
      found[metric] += is_there;
      any |= is_there;
    };
    look(config.penalize_duplicated_reasoning, faults.duplicated_reasoning, "reasoning_equal_to_final_answer_rate");
    look(config.penalize_empty_final_answer, faults.empty_final_answer, "empty_final_answer_rate");
    look(config.penalize_malformed_think_tag, faults.malformed_think_tag, "malformed_think_tag_rate");
    look(config.penalize_unwanted_tokens, has_any(tokens, config.unwanted), "unwanted_token_rate");
    if (!any) continue;
    rewards[i] = 0;
    for (auto& [name, values] : rollout.components) values[i] = 0;
  }
  for (const auto& [metric, times] : found)
    rollout.metrics[metric] = static_cast<double>(times) / static_cast<double>(rows);
}

}  // namespace hexad::algorithm

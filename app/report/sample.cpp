#include "app/report/sample.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "lib/base/utf8.hpp"

namespace hexad::report {
namespace {

using Json = nlohmann::ordered_json;

// What is kept of a sample: its beginning, and its end, where the answer stands.
constexpr size_t kTokensAtStart = 600, kTokensAtEnd = 400, kBytesAtStart = 4000, kBytesAtEnd = 4000;

std::string text_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The list at `key`, if it has `size` elements.
const Json* list_of(const Json& line, const char* key, size_t size) {
  const auto found = line.find(key);
  return found != line.end() && found->is_array() && found->size() == size ? &*found : nullptr;
}

bool is_one(const Json& value) { return value.is_number() && value.get<double>() != 0; }

Json four_digits(const Json* list, size_t i) {
  if (!list || !(*list)[i].is_number()) return {};
  return std::strtod(fmt::format("{:.4g}", (*list)[i].get<double>()).c_str(), nullptr);
}

std::string shortened(const std::string& text) {
  if (text.size() <= kBytesAtStart + kBytesAtEnd) return text;
  const std::string_view head = utf8_front(text, kBytesAtStart), tail = utf8_back(text, kBytesAtEnd);
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", head, text.size() - head.size() - tail.size(), tail);
}

struct Tokens {
  const Json *ids, *mask, *texts, *train, *rollout;
  size_t first, count;  // first: that the model wrote
};

std::optional<Tokens> tokens_of(const Json& line) {
  const auto ids = line.find("token_ids");
  if (ids == line.end() || !ids->is_array()) return std::nullopt;
  const size_t count = ids->size();
  const Json* mask = list_of(line, "token_loss_mask", count);
  if (!mask) return std::nullopt;
  const auto first = static_cast<size_t>(std::find_if(mask->begin(), mask->end(), is_one) - mask->begin());
  return Tokens{&*ids,
                mask,
                list_of(line, "tokens", count),
                list_of(line, "prev_logprobs", count),
                list_of(line, "generation_logprobs", count),
                first,
                count};
}

// Log-probs that a run did not compute are null in its log; an older version wrote zeros, which no rollout has.
bool are_computed(const Tokens& tokens) {
  const auto is_zero = [](const Json& value) { return value.is_number() && value.get<double>() == 0; };
  return tokens.train && !(tokens.rollout && std::ranges::all_of(*tokens.train, is_zero) &&
                           !std::ranges::all_of(*tokens.rollout, is_zero));
}

void add_tokens(Json& sample, const Tokens& tokens) {
  const size_t shown = tokens.count - tokens.first, kept = kTokensAtStart + kTokensAtEnd;
  const size_t left_out = shown > kept ? shown - kept : 0;
  Json texts = Json::array(), written = Json::array(), train = Json::array(), rollout = Json::array();
  for (size_t i = tokens.first; i < tokens.count; ++i) {
    if (left_out > 0 && i == tokens.first + kTokensAtStart) i += left_out;
    const bool model = is_one((*tokens.mask)[i]);
    texts.push_back(tokens.texts ? (*tokens.texts)[i] : Json("#" + (*tokens.ids)[i].dump()));
    written.push_back(model ? 1 : 0);
    train.push_back(model ? four_digits(tokens.train, i) : Json());
    rollout.push_back(model ? four_digits(tokens.rollout, i) : Json());
  }
  sample["tokens"] = std::move(texts);
  sample["written"] = std::move(written);
  sample["train"] = are_computed(tokens) ? std::move(train) : Json();
  sample["rollout"] = std::move(rollout);
  if (left_out > 0) sample["left_out"] = {{"at", kTokensAtStart}, {"count", left_out}};
}

// With the chat template's tokens where their texts are known.
std::string prompt_of(const Json& line, const std::string& response, const std::optional<Tokens>& tokens) {
  std::string prompt;
  if (tokens && tokens->texts) {
    for (size_t i = 0; i < tokens->first; ++i) {
      if (const Json& text = (*tokens->texts)[i]; text.is_string()) prompt += text.get<std::string>();
    }
    return prompt;
  }
  prompt = text_of(line, "content");
  if (prompt.ends_with(response)) prompt.resize(prompt.size() - response.size());
  return prompt;
}

// What a person asks of a reward: what was wanted, what it was made of, and why the sample may not have counted.
void add_verdict(Json& sample, const Json& line) {
  if (const std::string expected = text_of(line, "expected_answer"); !expected.empty())
    sample["expected"] = shortened(expected);
  const auto components = line.find("components");
  if (components != line.end() && components->is_object()) sample["components"] = *components;
  const auto truncated = line.find("truncated"), mask = line.find("sample_loss_mask");
  if (truncated != line.end() && *truncated == true) sample["truncated"] = true;
  if (mask != line.end() && mask->is_number() && mask->get<double>() == 0) sample["left_loss"] = true;
}

}  // namespace

std::optional<int64_t> response_length(const Json& line) {
  const auto mask = line.find("token_loss_mask");
  if (mask == line.end() || !mask->is_array()) return std::nullopt;
  return std::count_if(mask->begin(), mask->end(), is_one);
}

Json report_sample(const Json& line, int64_t step, size_t row) {
  const std::optional<Tokens> tokens = tokens_of(line);
  const std::string response = text_of(line, "response");
  Json sample = {{"step", step}, {"row", row}, {"reward", line.value("rewards", Json())}};
  if (const auto length = response_length(line)) sample["length"] = *length;
  sample["prompt"] = shortened(prompt_of(line, response, tokens));
  sample["response"] = shortened(response);
  add_verdict(sample, line);
  if (!tokens || tokens->first == tokens->count) return sample;
  sample["advantage"] = four_digits(list_of(line, "advantages", tokens->count), tokens->first);
  add_tokens(sample, *tokens);
  return sample;
}

}  // namespace hexad::report

// What a reward program is asked, and what it answers: a JSON value a line.
#pragma once
#include <optional>

#include "core/environment/environment.hpp"

namespace hexad::environment {

// {"id", "prompt", "response", "ground_truth", "metadata", "prompt_tokens", "response_tokens", "truncated", "group",
// "step", "turn"}, "state" where the program kept one, and "num_steps", those of the run, where they are known (above
// 0); bytes that are not UTF-8 become U+FFFD.
nlohmann::ordered_json request_of(const Sample& sample, int64_t id, int64_t step, int64_t num_steps = 0);

struct Answer {
  float reward = 0;
  std::vector<float> components;         // in the order of their names
  bool invalid = false, applies = true;  // what does not apply is invalid
  std::string reason;                    // why invalid
  std::optional<Reply> reply;
  nlohmann::ordered_json state;  // null: none
  std::optional<std::string> answer;
};

// It is no answer to the request.
struct BadAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// {"id": 7, "reward": 0.5, "components": {"format": 1}}, {"id": 7, "invalid": true, "reason": "..."} or {"id": 7,
// "applies": false}; a reward is a finite number, true (1), false (0) or null (invalid). `components`: exactly these.
// "reply": a text or {"content", "role"}; null is none. "state": anything. "answer": Scores::answers, what is no text
// as its JSON. Throws BadAnswer.
Answer answer_of(const nlohmann::ordered_json& value, int64_t id, const std::vector<std::string>& components);

// A line with the answers to `ids`: the answer itself, or with `batched` a list of them in that order. Throws
// BadAnswer.
std::vector<Answer> answers_of(std::string_view line, std::span<const int64_t> ids, bool batched,
                               const std::vector<std::string>& components);

}  // namespace hexad::environment

// Rewards of a response's length in tokens.
#pragma once
#include <memory>

#include "core/environment/environment.hpp"

namespace hexad::environment {

// 1 at `full_at` tokens and beyond, 0 at `none_at` and beyond, a straight line between: full_at < none_at favours short
// responses, full_at > none_at long ones.
std::unique_ptr<Environment> make_length(const nlohmann::ordered_json& arguments);

// The cosine reward of Yeo et al. 2025 (Demystifying Long Chain-of-Thought Reasoning in LLMs), with the names and
// defaults of open-r1's cosine_scaled_reward: with c = (1 + cos(pi * min(tokens / max_tokens, 1))) / 2, a right
// response earns min_value_correct + (max_value_correct - min_value_correct) * c, a wrong one
// max_value_wrong + (min_value_wrong - max_value_wrong) * c. Lengths are tokens, as in the paper.
class CosineLength {
 public:
  // Of a part of env.<name>.rewards with `schedule: cosine`.
  explicit CosineLength(const nlohmann::ordered_json& arguments);
  // The part of the list whose reward of at least 1 makes a response a right one.
  const std::string& of() const { return of_; }
  float reward(const Sample& sample, bool right) const;

 private:
  std::string of_;
  double min_wrong_, max_wrong_, min_correct_, max_correct_;
  int64_t max_tokens_;
};

}  // namespace hexad::environment

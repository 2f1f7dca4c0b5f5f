// An LLM as a judge behind /v1/chat/completions: what it is asked, and the score in what it replies.
#pragma once
#include <hexad/environment.hpp>

#include <memory>

#include "protocol.hpp"
#include "settings.hpp"

namespace http_reward {

class Judge {
 public:
  // Throws sdk::Error for a prompt, regex or path that cannot work.
  explicit Judge(const JudgeSettings& settings);

  std::string request(const hexad::sdk::SampleView& sample) const;
  // The reward in the body of a completion. Throws Unusable.
  float reward(std::string_view body) const;

 private:
  double score_in(const std::string& content) const;
  JudgeSettings settings_;
  std::shared_ptr<void> regex_;  // pcre2_code; null: score_json
};

// The prompt with the sample's texts in place of {prompt}, {response} and {ground_truth}; braces in them are only text.
std::string filled(const std::string& prompt, const hexad::sdk::SampleView& sample);

}  // namespace http_reward

// env.<name>.plugin_config, read and checked.
#pragma once
#include <hexad/services.hpp>

#include <optional>
#include <string>
#include <vector>

namespace http_reward {

// A chat completion that says a score.
struct JudgeSettings {
  std::string model, system, prompt;  // the prompt with {prompt}, {response} and {ground_truth}
  std::string body;                   // a JSON object: further members of the request
  int64_t max_tokens = 0;
  double temperature = 0;
  std::string score_regex, score_json;  // one of them
  double score_min = 0, score_max = 1;  // become rewards 0 and 1
};

struct Settings {
  std::string url, shown_url;        // the second without what may be secret
  std::vector<std::string> headers;  // "Name: value"
  std::vector<std::string> secrets;  // texts that no message may hold
  double timeout_s = 0, backoff_s = 0, deadline_s = 0;
  int64_t retries = 0, max_concurrency = 0, batch_size = 0;
  std::optional<JudgeSettings> judge;  // absent: the server speaks the protocol of reward programs
};

// Throws sdk::Error(INVALID_ARGUMENT).
Settings settings_from(const hexad::sdk::Config& config);

// Without any of the secrets.
std::string redacted(std::string text, const std::vector<std::string>& secrets);

}  // namespace http_reward

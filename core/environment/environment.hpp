// Environments: from a finished response to a reward.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.hpp"

namespace hexad::environment {

// One prompt with one response. The views live as long as the call.
struct Sample {
  std::string_view prompt;        // rendered, as the model saw it
  std::string_view response;      // decoded without special tokens; of several turns the newest
  std::string_view ground_truth;  // the dataset's answer
  int64_t prompt_tokens = 0;
  int64_t response_tokens = 0;
  bool truncated = false;                            // ended by the token limit, not by EOS or a stop string
  const nlohmann::ordered_json* metadata = nullptr;  // the record's extra fields; may be null
  std::span<const int64_t> tokens;                // [prompt_tokens + response_tokens]; prompt: all before the response
  uint64_t group = 0;                             // samples of one prompt share it and lie next to each other
  int64_t turn = 0;                               // responses before this one
  const nlohmann::ordered_json* state = nullptr;  // what the environment kept at the turn before; null at the first
};

// What an environment says back to a response: a message of the conversation.
struct Reply {
  std::string content, role = "user";
};

// Of Scores::invalid: the reward says nothing about such a sample. To a weighted sum it adds nothing; alone it is as 1.
constexpr uint8_t kNotApplicable = 2;

struct Scores {
  std::vector<float> rewards;                            // [samples]
  std::vector<uint8_t> invalid;                          // [samples] 1: could not be scored, must not train
  std::map<std::string, std::vector<float>> components;  // parts of the reward by name, [samples] each; often none
  std::map<std::string, double> metrics;                 // what else it reports of these samples; often none
  // [samples], or none. A sample with a reply goes on with another response, as long as grpo.max_rollout_turns and the
  // context allow; its rewards add up. Others have ended.
  std::vector<std::optional<Reply>> replies = {};
  std::vector<nlohmann::ordered_json> states = {};  // [samples], or none: Sample::state of the next turn
  std::string why_invalid = {};                     // the first reason why a sample is; may be unknown: empty
  // [samples], or none: what was read out of each response, "" where nothing was. Votes of a consensus (eval.metric
  // cons@k): equal texts are one answer.
  std::vector<std::string> answers = {};
};

// score() may be called by several threads. `step` of the run: for messages. Throws Interrupted, or Error where no
// sample could ever be scored.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual Scores score(std::span<const Sample> samples, int64_t step) const = 0;
  // Whether it may compare a response with the answer: a row that has none is worth a word then.
  virtual bool compares_answer() const { return true; }
};

// The built-in environment of this name, with its keyword arguments. Throws Error(config) for an unknown name (with a
// suggestion; `others`: names that would have been known, too) or argument.
std::unique_ptr<Environment> make_environment(const std::string& name, const nlohmann::ordered_json& arguments,
                                              const std::vector<std::string>& others = {});

// Of the built-in ones, with one line of description each: exact_answer, format, last_number, length, token_task.
std::map<std::string, std::string> environment_names();

// Metrics, as NeMo-RL's math environment has them, over scored samples, `samples_per_prompt` consecutive samples a
// prompt: accuracy (reward times properly ended, mean), pass@samples_per_prompt, fraction_of_samples_properly_ended,
// num_problems_in_batch (samples), generation_lengths, prompt_lengths (means), correct_solution_generation_lengths
// (mean over right ones, 0 if none). Samples flagged invalid are left out, and counted in num_invalid_samples if there
// are any.
std::map<std::string, double> environment_metrics(std::span<const Sample> samples, const Scores& scores,
                                                  int64_t samples_per_prompt = 1);

}  // namespace hexad::environment

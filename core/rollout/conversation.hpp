// One sample in the making: what the model was given and what it wrote, token by token.
#pragma once
#include <nlohmann/json.hpp>

#include "core/data/dataset/processor.hpp"
#include "core/environment/environment.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::rollout {

struct Conversation {
  Conversation(data::SharedDatum prompt, int64_t group);

  // A response's tokens, behind what there is.
  struct Response {
    std::span<const int32_t> tokens;
    std::span<const float> logprobs;
    std::span<const int32_t> weight_versions;
    bool truncated = false;  // the limit of tokens ended it
  };
  void add_response(const Response& written, const ModelText& model_text);
  // What the environment said back.
  void add_reply(std::span<const int32_t> given, const std::string& content);

  data::SharedDatum prompt;
  int64_t group = 0;  // samples of one prompt share it
  int64_t prompt_tokens = 0;
  std::vector<int32_t> tokens;    // prompt, then responses and replies in turn
  std::vector<float> mask;        // beside tokens: 1 on what the model wrote
  std::vector<float> logprobs;    // beside tokens: of the distribution that was sampled from; 0 where mask is
  std::vector<int32_t> versions;  // beside tokens: of the weights that drew them; -1 on the rest
  std::string text;               // what follows the prompt, without special tokens
  std::string response;           // the newest, without special tokens
  int64_t response_at = 0;        // its place in tokens
  int64_t turns = 0, written_tokens = 0;
  bool truncated = false, cut_off = false, ended = false;  // cut_off: the newest response; truncated: any, or a reply

  // What environments have said of it.
  float reward = 0;
  bool invalid = false;
  std::string why_invalid;                  // as far as it is known
  std::map<std::string, float> components;  // sums over turns
  std::optional<std::string> answer;        // environment::Scores::answers of the newest response, where it tells them
  nlohmann::ordered_json state;
  std::optional<environment::Reply> reply;  // to the newest response; nothing: it has ended
};

}  // namespace hexad::rollout

// The protocol of reward programs (docs/rewards.md, docs/turns.md) as a server speaks it.
#pragma once
#include <hexad/environment.hpp>

#include <optional>
#include <string>

#include "reply_json.hpp"

namespace http_reward {

nlohmann::ordered_json request_of(const hexad::sdk::SampleView& sample, int64_t id, int64_t step);

struct Answer {
  std::optional<float> reward = {};       // none: the server says that it cannot score the sample
  std::optional<std::string> reply = {};  // goes back to the model, as a message of `role`
  std::string role = "user";
  std::string state = {};  // JSON, for the sample's next turn; "": none
};

// What `value` answers to the request `id`. Throws Unusable.
Answer answer_of(const nlohmann::ordered_json& value, int64_t id);

}  // namespace http_reward

// What servers reply: JSON that somebody else wrote, and in it the protocol of reward programs (docs/rewards.md,
// docs/turns.md) as a server speaks it.
#pragma once
#include <hexad/environment.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace http_reward {

// A reply that holds no reward.
struct Unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Discarded if `text` is no JSON. Throws Unusable for what would take long or deep recursion to work with: more than 64
// levels, or an object of more than 1000 members.
nlohmann::ordered_json json_of(std::string_view text);

// On one line; bytes that are not UTF-8 become U+FFFD.
std::string text_of(const nlohmann::ordered_json& value);

// Its beginning, for a message: at most 200 bytes, and no part of a character.
std::string_view first_of(std::string_view text);

// JSON on one line. The sample's metadata are in it as the host gave them: a parser would change their numbers.
std::string request_of(const hexad::sdk::SampleView& sample, int64_t id, int64_t step);

struct Answer {
  std::optional<float> reward = {};       // none: the server says that it cannot score the sample
  std::optional<std::string> reply = {};  // goes back to the model, as a message of `role`
  std::string role = "user";
  std::string state = {};  // JSON, for the sample's next turn; "": none
};

// What `value` answers to the request `id`. Throws Unusable.
Answer answer_of(const nlohmann::ordered_json& value, int64_t id);

}  // namespace http_reward

// JSON that somebody else wrote, and as text.
#pragma once
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

}  // namespace http_reward

#include "reply_json.hpp"

#include <array>

namespace http_reward {

using Json = nlohmann::ordered_json;

Json json_of(std::string_view text) {
  constexpr int kMostLevels = 64, kMostMembers = 1000;
  std::array<int, kMostLevels + 2> members{};  // of the object at each level
  const auto watch = [&](int depth, Json::parse_event_t event, Json&) {
    if (depth > kMostLevels) throw Unusable("the JSON has more than 64 levels");
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) members[level + 1] = 0;
    if (event == Json::parse_event_t::key && ++members[level] > kMostMembers)
      throw Unusable("the JSON has an object of more than 1000 members");
    return true;
  };
  return Json::parse(text, watch, /*allow_exceptions=*/false);
}

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace http_reward

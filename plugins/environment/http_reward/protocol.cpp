#include "protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace http_reward {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& value) { return fmt::format("'{}'", first_of(text_of(value))); }

void read_reply(const Json& answer, Answer& out) {
  const Json given = answer.value("reply", Json());
  if (given.is_null()) return;
  const Json message = given.is_string() ? Json{{"content", given}} : given;
  const auto is_text = [&](const char* key) { return message.contains(key) && message.at(key).is_string(); };
  if (!message.is_object() || !is_text("content") || (message.contains("role") && !is_text("role")))
    throw Unusable("want a text or {\"content\": \"...\", \"role\": \"user\"} as \"reply\", got " + shown(given));
  out.reply = message.at("content").get<std::string>();
  out.role = message.value("role", out.role);
}

}  // namespace

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

std::string_view first_of(std::string_view text) {
  size_t end = std::min<size_t>(text.size(), 200);
  if (end < text.size()) {
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  }
  return text.substr(0, end);
}

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string request_of(const hexad::sdk::SampleView& sample, int64_t id, int64_t step) {
  const bool has_record = sample.metadata().starts_with('{') && Json::accept(sample.metadata());
  const Json before{{"id", id},
                    {"prompt", sample.prompt()},
                    {"response", sample.response()},
                    {"ground_truth", sample.ground_truth()}};
  Json after{{"prompt_tokens", sample.raw().prompt_tokens},
             {"response_tokens", sample.raw().response_tokens},
             {"truncated", sample.truncated()},
             {"group", sample.raw().group},
             {"step", step},
             {"turn", sample.turn()}};
  const Json state = Json::parse(sample.state(), nullptr, false);  // no JSON: there is none
  if (!state.is_discarded()) after["state"] = state;
  std::string request = text_of(before);
  request.back() = ',';
  request += R"("metadata":)" + (has_record ? std::string(sample.metadata()) : "{}") + ",";
  return request + text_of(after).substr(1);
}

Answer answer_of(const Json& value, int64_t id) {
  if (!value.is_object() || value.value("id", Json()) != Json(id))
    throw Unusable(fmt::format("want an object with the \"id\" of the request, {}, got {}", id, shown(value)));
  const Json reward = value.value("reward", Json("missing"));
  if (value.value("invalid", Json()) == Json(true) || reward.is_null()) return {};
  Answer answer;
  if (reward.is_boolean()) {
    answer.reward = reward.get<bool>() ? 1.0f : 0.0f;
  } else if (reward.is_number() && std::abs(reward.get<double>()) <= std::numeric_limits<float>::max()) {
    answer.reward = reward.get<float>();
  } else {
    throw Unusable("want a finite number as \"reward\", got " + shown(value));
  }
  read_reply(value, answer);
  const Json state = value.value("state", Json());
  if (!state.is_null()) answer.state = text_of(state);
  return answer;
}

}  // namespace http_reward

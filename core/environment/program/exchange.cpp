#include "core/environment/program/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lib/base/json.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

// The beginning of an answer for a message.
std::string shown(const std::string& text) {
  constexpr size_t kShown = 200;
  return text.size() > kShown ? std::string(utf8_front(text, kShown)) + "..." : text;
}

std::string shown(const Json& value) { return shown(json_text(value)); }

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw BadAnswer(fmt::format(format, std::forward<Args>(args)...));
}

float number_of(const Json& value, const std::string& what) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0f : 0.0f;
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::abs(number) <= std::numeric_limits<float>::max()) return static_cast<float>(number);
  }
  refuse("want a finite number as {}, got {}", what, shown(value));
}

// Refuses what would take deep recursion, or long: members of an object are looked for one by one.
Json parse_bounded(std::string_view line) {
  constexpr int kMostLevels = 64, kMostMembers = 1000;
  std::array<int, kMostLevels + 2> members{};  // of the object at each level
  return parse_json<Json>(line, [&](int depth, Json::parse_event_t event, Json&) {
    if (depth > kMostLevels) refuse("want JSON of at most {} levels, got more", kMostLevels);
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) members[level + 1] = 0;
    if (event == Json::parse_event_t::key && ++members[level] > kMostMembers)
      refuse("want objects of at most {} members, got more", kMostMembers);
    return true;
  });
}

}  // namespace

Json request_of(const Sample& sample, int64_t id, int64_t step, int64_t num_steps) {
  const bool has_record = sample.metadata && sample.metadata->is_object();
  Json request{{"id", id},
               {"prompt", std::string(sample.prompt)},
               {"response", std::string(sample.response)},
               {"ground_truth", std::string(sample.ground_truth)},
               {"metadata", has_record ? *sample.metadata : Json::object()},
               {"prompt_tokens", sample.prompt_tokens},
               {"response_tokens", sample.response_tokens},
               {"truncated", sample.truncated},
               {"group", sample.group},
               {"step", step},
               {"turn", sample.turn}};
  if (sample.state) request["state"] = *sample.state;
  if (num_steps > 0) request["num_steps"] = num_steps;
  return request;
}

namespace {

std::optional<Reply> reply_of(const Json& answer) {
  const auto found = answer.find("reply");
  if (found == answer.end() || found->is_null()) return std::nullopt;
  Json message = *found;
  if (message.is_string()) message = {{"content", message}};
  const auto is_text = [&](const char* key) { return message.contains(key) && message.at(key).is_string(); };
  if (!message.is_object() || !is_text("content") || (message.contains("role") && !is_text("role")))
    refuse("want a text or {{\"content\": \"...\", \"role\": \"user\"}} as \"reply\", got {}", shown(*found));
  return Reply{message.at("content").get<std::string>(), message.value("role", "user")};
}

}  // namespace

Answer answer_of(const Json& value, int64_t id, const std::vector<std::string>& components) {
  if (!value.is_object()) refuse("want an object as {{\"id\": {}, \"reward\": 1.0}}, got {}", id, shown(value));
  const auto got = value.find("id");
  if (got == value.end() || !got->is_number_integer() || got->get<int64_t>() != id)
    refuse("want the \"id\" of the request, {}, got {}", id, shown(value));
  Answer answer;
  const auto invalid = value.find("invalid");
  const auto reward = value.find("reward");
  answer.applies = value.value("applies", Json(true)) != false;
  answer.invalid =
      !answer.applies || (invalid != value.end() && *invalid == true) || (reward != value.end() && reward->is_null());
  if (answer.invalid) {
    const auto reason = value.find("reason");
    answer.reason =
        reason != value.end() && reason->is_string() ? shown(reason->get<std::string>()) : "it gave no reason";
    answer.components.resize(components.size());
    return answer;
  }
  if (reward == value.end()) refuse("want a \"reward\", got {}", shown(value));
  answer.reward = number_of(*reward, "\"reward\"");
  const auto found = value.find("components");
  const Json parts = found == value.end() ? Json::object() : *found;
  if (!parts.is_object()) refuse("want an object as \"components\", got {}", shown(parts));
  for (const std::string& name : components) {
    if (!parts.contains(name)) refuse("component '{}' is missing in {}", name, shown(value));
    answer.components.push_back(number_of(parts.at(name), "component '" + name + "'"));
  }
  for (const auto& entry : parts.items()) {
    if (std::find(components.begin(), components.end(), entry.key()) == components.end())
      refuse("component '{}' is not in the list `components` of the configuration", entry.key());
  }
  answer.reply = reply_of(value);
  answer.state = value.value("state", Json());
  const Json text = value.value("answer", Json());
  if (!text.is_null()) answer.answer = text.is_string() ? text.get<std::string>() : json_text(text);
  return answer;
}

std::vector<Answer> answers_of(std::string_view line, std::span<const int64_t> ids, bool batched,
                               const std::vector<std::string>& components) {
  Json value;
  try {
    value = parse_bounded(line);
  } catch (const Json::exception&) {
    refuse(
        "want a line of JSON (what is for a person goes to standard error; NaN is no JSON: say \"invalid\": true), got "
        "{}",
        json_text(Json(shown(std::string(line)))));
  }
  if (!batched) return {answer_of(value, ids[0], components)};
  if (!value.is_array() || value.size() != ids.size())
    refuse("want a list of {} answers, got {}", ids.size(),
           value.is_array() ? fmt::format("{} answers", value.size()) : shown(value));
  std::vector<Answer> answers;
  for (size_t i = 0; i < ids.size(); ++i) answers.push_back(answer_of(value[i], ids[i], components));
  return answers;
}

}  // namespace hexad::environment

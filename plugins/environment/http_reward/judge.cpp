#include "judge.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace http_reward {
namespace {

using hexad::sdk::fail;
using hexad::sdk::SampleView;
using Json = nlohmann::ordered_json;

// Length of a placeholder {name} at `at`, its braces among it; 0: none is there.
size_t placeholder(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
  return end > at + 1 && end < text.size() && text[end] == '}' ? end + 1 - at : 0;
}

void check_prompt(const std::string& prompt) {
  bool has_response = false;
  for (size_t at = prompt.find('{'); at != prompt.npos; at = prompt.find('{', at + 1)) {
    const size_t length = placeholder(prompt, at);
    if (length == 0) continue;
    const std::string name = prompt.substr(at, length);
    has_response |= name == "{response}";
    if (name != "{prompt}" && name != "{response}" && name != "{ground_truth}")
      fail(HEXAD_INVALID_ARGUMENT,
           "judge.prompt: no such placeholder: %.80s; there are {prompt}, {response} and {ground_truth}", name.c_str());
  }
  if (!has_response) fail(HEXAD_INVALID_ARGUMENT, "judge.prompt: want {response} in it, or the judge does not see it");
}

// A number, or a text that is one.
std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  while (end && *end == ' ') ++end;
  return text.empty() || *end != '\0' || !std::isfinite(value) ? std::nullopt : std::optional(value);
}

// The JSON of a reply, which may stand between other text or in a fence.
Json json_in(const std::string& content) {
  Json value = json_of(content);
  if (!value.is_discarded()) return value;
  const size_t begin = content.find('{'), end = content.rfind('}');
  if (begin == content.npos || end == content.npos || end < begin) return value;
  return json_of(std::string_view(content).substr(begin, end - begin + 1));
}

}  // namespace

std::string filled(const std::string& prompt, const SampleView& sample) {
  std::string text;
  for (size_t at = 0; at < prompt.size();) {
    const size_t length = prompt[at] == '{' ? placeholder(prompt, at) : 0;
    const std::string_view name = std::string_view(prompt).substr(at, length);
    if (name == "{prompt}") text += sample.prompt();
    if (name == "{response}") text += sample.response();
    if (name == "{ground_truth}") text += sample.ground_truth();
    if (length == 0) text += prompt[at];
    at += std::max<size_t>(length, 1);
  }
  return text;
}

Judge::Judge(const JudgeSettings& settings) : settings_(settings) {
  check_prompt(settings.prompt);
  if (settings.score_regex.empty()) {
    if (!settings.score_json.starts_with('/') || settings.score_json.find('~') != std::string::npos)
      fail(HEXAD_INVALID_ARGUMENT, "judge.score_json: want a JSON pointer, as /score, got '%.80s'",
           settings.score_json.c_str());
    return;
  }
  int error = 0;
  size_t at = 0;
  const auto* expression = reinterpret_cast<PCRE2_SPTR>(settings.score_regex.data());
  regex_ = {pcre2_compile(expression, settings.score_regex.size(), PCRE2_DOTALL, &error, &at, nullptr),
            [](void* code) { pcre2_code_free(static_cast<pcre2_code*>(code)); }};
  if (regex_) return;
  char why[256] = {};
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(why), sizeof why);
  fail(HEXAD_INVALID_ARGUMENT, "judge.score_regex: '%.200s' is no regular expression (PCRE2): %s at offset %zu",
       settings.score_regex.c_str(), why, at);
}

std::string Judge::request(const SampleView& sample) const {
  Json messages = Json::array();
  if (!settings_.system.empty()) messages.push_back({{"role", "system"}, {"content", settings_.system}});
  messages.push_back({{"role", "user"}, {"content", filled(settings_.prompt, sample)}});
  Json body = {{"model", settings_.model},
               {"messages", std::move(messages)},
               {"temperature", settings_.temperature},
               {"max_tokens", settings_.max_tokens}};
  body.update(Json::parse(settings_.body));
  return text_of(body);
}

// The last match counts: a judge thinks before it says its score.
double Judge::score_in(const std::string& content) const {
  std::optional<std::string> found;
  if (regex_) {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
        pcre2_match_data_create(16, nullptr), pcre2_match_data_free);
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(content.data());
    for (size_t at = 0; at <= content.size();) {
      const int groups =
          pcre2_match(static_cast<pcre2_code*>(regex_.get()), subject, content.size(), at, 0, match.get(), nullptr);
      if (groups < 0) break;
      const size_t* place = pcre2_get_ovector_pointer(match.get());
      const size_t of = groups > 1 ? 2 : 0;  // the first group, or all of it
      if (place[of] != PCRE2_UNSET && place[of + 1] >= place[of])
        found = content.substr(place[of], place[of + 1] - place[of]);
      at = std::max(place[1], at + 1);
    }
  } else {
    const Json value = json_in(content);
    const Json::json_pointer pointer(settings_.score_json);
    if (!value.is_discarded() && value.contains(pointer)) {
      const Json& score = value.at(pointer);
      found = score.is_string() ? score.get<std::string>() : text_of(score);
    }
  }
  if (!found) throw Unusable("the judge's reply has no score: '" + std::string(first_of(content)) + "'");
  const std::optional<double> score = number_of(*found);
  if (!score) throw Unusable("the judge's score is no number: '" + std::string(first_of(*found)) + "'");
  return *score;
}

float Judge::reward(std::string_view body) const {
  const Json reply = json_of(body);
  static const Json::json_pointer content("/choices/0/message/content");
  if (reply.is_discarded() || !reply.contains(content) || !reply.at(content).is_string())
    throw Unusable("no chat completion (choices[0].message.content): '" + std::string(first_of(body)) + "'");
  const double score = score_in(reply.at(content).get<std::string>());
  if (score < settings_.score_min || score > settings_.score_max)
    throw Unusable("the judge's score " + text_of(score) + " is outside of score_min " + text_of(settings_.score_min) +
                   " to score_max " + text_of(settings_.score_max));
  return static_cast<float>((score - settings_.score_min) / (settings_.score_max - settings_.score_min));
}

}  // namespace http_reward

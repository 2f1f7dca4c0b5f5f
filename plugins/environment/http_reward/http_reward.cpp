// Rewards by a server: a program's protocol over HTTP, or a judge behind /v1/chat/completions (docs/rewards.md).
//
// env.<name>: {plugin: http_reward, plugin_config: {url: http://..., judge: {...}}}
#include <hexad/environment.hpp>

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "client.hpp"
#include "judge.hpp"

namespace http_reward {
namespace {

using namespace hexad::sdk;
using Json = nlohmann::ordered_json;

// As a reward program is asked.
Json request_of(const SampleView& sample, int64_t id, int64_t step) {
  const Json record = Json::parse(sample.metadata(), nullptr, false);
  return {{"id", id},
          {"prompt", sample.prompt()},
          {"response", sample.response()},
          {"ground_truth", sample.ground_truth()},
          {"metadata", record.is_object() ? record : Json::object()},
          {"prompt_tokens", sample.raw().prompt_tokens},
          {"response_tokens", sample.raw().response_tokens},
          {"truncated", sample.truncated()},
          {"group", sample.raw().group},
          {"step", step}};
}

// The reward in an answer to `id`; nothing: the server says that it cannot score it. Throws Unusable.
std::optional<float> reward_in(const Json& answer, int64_t id) {
  const std::string shown = "'" + text_of(answer).substr(0, 200) + "'";
  if (!answer.is_object() || answer.value("id", Json()) != Json(id))
    throw Unusable(fmt::format("want an object with the \"id\" of the request, {}, got {}", id, shown));
  if (answer.value("invalid", Json()) == Json(true)) return std::nullopt;
  const Json reward = answer.value("reward", Json("missing"));
  if (reward.is_null()) return std::nullopt;
  if (reward.is_boolean()) return reward.get<bool>() ? 1.0f : 0.0f;
  if (!reward.is_number() || !(std::abs(reward.get<double>()) <= std::numeric_limits<float>::max()))
    throw Unusable("want a finite number as \"reward\", got " + shown);
  return reward.get<float>();
}

class HttpReward {
 public:
  HttpReward(const Call&, const Config& config) : settings_(settings_from(config)), client_(settings_) {
    if (settings_.judge) judge_.emplace(*settings_.judge);
  }

  void score_all(const Call& call, std::span<const hexad_sample* const> samples, hexad_scores& out) {
    int64_t failures = 0, logged[2] = {};  // attempts, and those that were a sample's last
    const auto set_reward = [&](int64_t sample, std::optional<float> reward) {
      out.rewards[sample] = reward.value_or(0);
      out.invalid[sample] = !reward;
    };
    Exchange exchange;
    exchange.body = [&](std::span<const int64_t> places) { return body_of(samples, places, call.step()); };
    exchange.take = [&](std::span<const int64_t> places, std::string_view body) { take(places, body, set_reward); };
    exchange.give_up = [&](int64_t sample, const std::string&) { set_reward(sample, std::nullopt); };
    exchange.log = [&](const std::string& why, bool last) {
      ++failures;
      if (logged[last] == kLogged) return;
      ++logged[last];
      call.log(HEXAD_LOG_WARN, why);
    };
    exchange.cancelled = [&] { return call.cancelled(); };
    client_.run(static_cast<int64_t>(samples.size()), exchange);
    if (call.cancelled()) fail(HEXAD_CANCELLED, "cancelled while rewards were asked for");
    const int64_t more = failures - logged[0] - logged[1];
    if (more > 0) call.log(HEXAD_LOG_WARN, fmt::format("{} more failures", more));
    if (failures > 0) call.metric("num_reward_failures", static_cast<double>(failures), 1, HEXAD_REDUCE_SUM);
  }

 private:
  static constexpr int64_t kLogged = 5;  // failures of a call, of each kind

  std::string body_of(std::span<const hexad_sample* const> samples, std::span<const int64_t> places,
                      int64_t step) const {
    const auto sample = [&](int64_t place) { return SampleView(samples[static_cast<size_t>(place)]); };
    if (judge_) return judge_->request(sample(places[0]));
    if (settings_.batch_size == 1) return text_of(request_of(sample(places[0]), places[0], step));
    Json list = Json::array();
    for (const int64_t place : places) list.push_back(request_of(sample(place), place, step));
    return text_of(list);
  }

  template <typename SetReward>
  void take(std::span<const int64_t> places, std::string_view body, SetReward&& set_reward) const {
    if (judge_) return set_reward(places[0], judge_->reward(body));
    const Json value = json_of(body);
    if (value.is_discarded()) throw Unusable("want JSON, got '" + std::string(body.substr(0, 200)) + "'");
    if (settings_.batch_size == 1) return set_reward(places[0], reward_in(value, places[0]));
    if (!value.is_array() || value.size() != places.size())
      throw Unusable(fmt::format("want a list of {} answers, got '{}'", places.size(), text_of(value).substr(0, 200)));
    std::vector<std::optional<float>> rewards;
    for (size_t i = 0; i < places.size(); ++i) rewards.push_back(reward_in(value[i], places[i]));
    for (size_t i = 0; i < places.size(); ++i) set_reward(places[i], rewards[i]);
  }

  const Settings settings_;
  Client client_;
  std::optional<Judge> judge_;
};

}  // namespace
}  // namespace http_reward

HEXAD_CPP_ENVIRONMENT(http_reward::HttpReward, "http_reward", "1.0.0", "Apache-2.0")

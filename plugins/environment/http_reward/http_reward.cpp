// Rewards by a server: a program's protocol over HTTP, or a judge behind /v1/chat/completions (docs/rewards.md).
//
// env.<name>: {plugin: http_reward, plugin_config: {url: http://..., judge: {...}}}
#include <hexad/environment.hpp>

#include <fmt/format.h>

#include <deque>

#include "client.hpp"
#include "judge.hpp"
#include "protocol.hpp"

namespace http_reward {
namespace {

using namespace hexad::sdk;
using Json = nlohmann::ordered_json;

class HttpReward {
 public:
  HttpReward(const Call&, const Config& config) : settings_(settings_from(config)), client_(settings_) {
    if (settings_.judge) judge_.emplace(*settings_.judge);
  }

  void score_all(const Call& call, std::span<const hexad_sample* const> samples, hexad_scores& out) {
    int64_t failures = 0, logged[2] = {};  // attempts, and those that were a sample's last
    texts_.clear();
    const auto set = [&](int64_t sample, const Answer& answer) { tell(sample, answer, out); };
    Exchange exchange;
    exchange.body = [&](std::span<const int64_t> places) { return body_of(samples, places, call.step()); };
    exchange.take = [&](std::span<const int64_t> places, std::string_view body) { take(places, body, set); };
    exchange.give_up = [&](int64_t sample, const std::string&) { set(sample, {}); };
    exchange.log = [&](const std::string& why, bool last) {
      ++failures;
      if (logged[last] == kLogged) return;
      ++logged[last];
      call.log(HEXAD_LOG_WARN, why);
    };
    exchange.say = [&](const std::string& what) { call.log(HEXAD_LOG_WARN, what); };
    exchange.cancelled = [&] { return call.cancelled(); };
    client_.run(static_cast<int64_t>(samples.size()), deadline_of(call), exchange);
    if (call.cancelled()) fail(HEXAD_CANCELLED, "cancelled while rewards were asked for");
    const int64_t more = failures - logged[0] - logged[1];
    if (more > 0) call.log(HEXAD_LOG_WARN, fmt::format("{} more failures", more));
    if (failures > 0) call.metric("num_reward_failures", static_cast<double>(failures), 1, HEXAD_REDUCE_SUM);
  }

 private:
  static constexpr int64_t kLogged = 5;  // failures of a call, of each kind

  // Before the host takes the call for one that hangs, and ends the run.
  Deadline deadline_of(const Call& call) const {
    const Clock::time_point now = Clock::now(), own = now + seconds(settings_.deadline_s);
    const Deadline deadline{own, fmt::format("deadline_s {:g}", settings_.deadline_s)};
    if (call.deadline_ns() == INT64_MAX) return deadline;
    const Clock::time_point host =
        now + (Clock::time_point(std::chrono::nanoseconds(call.deadline_ns())) - now) / 10 * 9;
    return own <= host ? deadline : Deadline{host, "nine tenths of cluster.worker_timeout_s"};
  }

  std::string body_of(std::span<const hexad_sample* const> samples, std::span<const int64_t> places,
                      int64_t step) const {
    const auto sample = [&](int64_t place) { return SampleView(samples[static_cast<size_t>(place)]); };
    if (judge_) return judge_->request(sample(places[0]));
    if (settings_.batch_size == 1) return request_of(sample(places[0]), places[0], step);
    std::string list;
    for (const int64_t place : places) list += (list.empty() ? '[' : ',') + request_of(sample(place), place, step);
    return list + ']';
  }

  template <typename Set>
  void take(std::span<const int64_t> places, std::string_view body, Set&& set) const {
    if (judge_) return set(places[0], Answer{.reward = judge_->reward(body)});
    const Json value = json_of(body);
    if (value.is_discarded()) throw Unusable(fmt::format("want JSON, got '{}'", first_of(body)));
    if (settings_.batch_size == 1) return set(places[0], answer_of(value, places[0]));
    if (!value.is_array() || value.size() != places.size())
      throw Unusable(fmt::format("want a list of {} answers, got '{}'", places.size(), first_of(text_of(value))));
    std::vector<Answer> answers;
    for (size_t i = 0; i < places.size(); ++i) answers.push_back(answer_of(value[i], places[i]));
    for (size_t i = 0; i < places.size(); ++i) set(places[i], answers[i]);
  }

  // The host reads texts of `out` after the call.
  void tell(int64_t sample, const Answer& answer, hexad_scores& out) {
    out.rewards[sample] = answer.reward.value_or(0);
    out.invalid[sample] = !answer.reward;
    hexad_reply& reply = out.replies[sample];
    if (answer.reply) {
      const std::string& content = texts_.emplace_back(*answer.reply);
      reply.content = content.c_str(), reply.content_size = content.size();
      reply.role = texts_.emplace_back(answer.role).c_str();
    }
    if (!answer.state.empty()) {
      const std::string& state = texts_.emplace_back(answer.state);
      reply.state = state.c_str(), reply.state_size = state.size();
    }
  }

  const Settings settings_;
  Client client_;
  std::optional<Judge> judge_;
  std::deque<std::string> texts_;  // of the newest call
};

}  // namespace
}  // namespace http_reward

HEXAD_CPP_ENVIRONMENT(http_reward::HttpReward, "http_reward", "1.0.0", "Apache-2.0")

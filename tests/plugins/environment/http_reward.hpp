// The plugin http_reward as it is loaded, and answers of servers that it asks.
#pragma once
#include <doctest/doctest.h>

#include "core/environment/make.hpp"
#include "core/environment/plugin_environment.hpp"
#include "lib/base/json.hpp"
#include "tests/plugins/environment/fake_server.hpp"
#include "tests/support/said.hpp"

namespace http_reward_test {

using namespace hexad;
using fake_server::Reply;
using fake_server::Request;
using fake_server::Server;
using Json = nlohmann::ordered_json;
using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;

constexpr double kNever = 600;  // seconds that no test waits

inline std::unique_ptr<environment::Environment> http_reward(const Json& plugin_config,
                                                             const std::atomic<int>* interrupted = nullptr) {
  ::setenv("no_proxy", "127.0.0.1", 1);
  static plugin::Registry registry({}, nullptr);
  return environment::make_plugin_environment("judge", {{"plugin", "http_reward"}, {"plugin_config", plugin_config}},
                                              registry, {}, interrupted);
}

// For a server at `url`, without waiting.
inline Json quick(const std::string& url, const Json& more = Json::object()) {
  Json config = {{"url", url}, {"backoff_s", 0.01}, {"timeout_s", 60}};
  config.update(more);
  return config;
}

inline environment::Scores score(const environment::Environment& environment,
                                 const std::vector<std::string>& responses) {
  const Json record = parse_data(R"({"tests": [1, 2.50]})", "d");
  std::vector<environment::Sample> samples;
  for (const std::string& response : responses) {
    environment::Sample sample;
    sample.prompt = "2 + 2?";
    sample.response = response;
    sample.ground_truth = "4";
    sample.metadata = &record;
    samples.push_back(sample);
  }
  return environment.score(samples, 6);
}

inline Reply reward(const Request& request, double value) {
  return {200, Json{{"id", Json::parse(request.body).at("id")}, {"reward", value}}.dump()};
}

inline Reply completion(const std::string& content) {
  return {200, Json{{"choices", {{{"message", {{"role", "assistant"}, {"content", content}}}}}}}.dump()};
}

inline Json judge(const Json& more = Json::object()) {
  Json settings = {
      {"model", "m"}, {"prompt", "{response}"}, {"score_regex", "Score: *([-0-9.e+]+)"}, {"score_max", 10}};
  settings.update(more);
  for (const auto& entry : more.items()) {
    if (entry.value().is_null()) settings.erase(entry.key());
  }
  return {{"judge", settings}};
}

}  // namespace http_reward_test

// openai_cfg as it is read, and keys that make no sense.
#include "tests/plugins/openai_bridge/support/harness.hpp"

using namespace openai_test;

namespace {

// What the plugin makes of a section, as text: which servers, and how they are asked.
std::string settings_of(const std::string& key, const Json& value) {
  const ModelDir model;
  const HostCall host;
  hexad::plugin::CallContext context;
  hexad::plugin::Call call(context, "test");
  Json section = {{"model_name", model.path().string()}, {"openai_cfg", {{"model", "m"}}}};
  section["openai_cfg"]["server_urls"] = {"http://127.0.0.1:1"};
  if (!key.empty()) section["openai_cfg"][key] = value;
  const hexad::plugin::PluginConfig config("policy.generation", section);
  const hexad::sdk::Call service(logging_host(), call.handle());
  const hexad::openai::Settings settings = hexad::openai::read_settings(hexad::sdk::Config(service, config.handle()));
  const hexad::bridge::Settings& s = settings.common;
  const hexad::bridge::Deadlines& d = s.deadlines;
  const hexad::openai::DialectSettings& asks = settings.dialect;
  const bool own_tokenizer = asks.tokenizer == s.model_name;
  std::string text = s.api_key + " " + s.spawn.log_dir + " " + asks.fixed.model + " " + asks.prompt + " " +
                     asks.fixed.extra.dump() + " " + (own_tokenizer ? "" : asks.tokenizer);
  for (const std::string& url : s.urls) text += " " + url;
  for (const std::string& part : s.spawn.command) text += " " + part;
  for (const double number :
       {d.startup.count(), d.probe.count(), d.stall.count(), d.lost.count(), static_cast<double>(s.max_running),
        static_cast<double>(s.attempts), static_cast<double>(s.spawn.servers), static_cast<double>(s.seed_requests),
        static_cast<double>(asks.fixed.logprobs)})
    text += " " + std::to_string(number);
  return text;
}

std::string error_with(const std::string& key, const Json& value) {
  try {
    settings_of(key, value);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("each key of openai_cfg says which servers are asked, or how") {
  const LetterModel model;
  const std::map<std::string, Json> keys = {{"server_urls", {"http://127.0.0.1:2"}},
                                            {"api_key_env_var", "HOME"},
                                            {"model", "other"},
                                            {"prompt", "token_ids"},
                                            {"logprobs", true},
                                            {"tokenizer", model.section().at("model_name")},
                                            {"extra_body", {{"user", "u"}}},
                                            {"max_running_requests", 7},
                                            {"max_attempts", 7},
                                            {"seed_requests", false},
                                            {"server_command", {"other"}},
                                            {"num_servers", 7},
                                            {"server_log_dir", "other"},
                                            {"startup_timeout_s", 0.5},
                                            {"health_timeout_s", 0.5},
                                            {"stall_timeout_s", 0.5},
                                            {"lost_timeout_s", 0.5}};
  for (const auto& [key, value] : keys) CHECK_MESSAGE(settings_of(key, value) != settings_of("", nullptr), key);
  CHECK(settings_of("server_urls", {"https://host/v1/"}) == settings_of("server_urls", {"https://host"}));
}

TEST_CASE("what openai_cfg must say, and what it may not, is refused with what was wanted") {
  CHECK(error_with("model", "") == "openai_cfg.model is missing: wanted the name by which the servers know the model");
  CHECK(error_with("server_urls", Json::array()) ==
        "openai_cfg.server_urls is missing: wanted the URLs of servers to ask, such as [http://127.0.0.1:8000]");
  CHECK(error_with("server_urls", {"ftp://x"}) ==
        "openai_cfg.server_urls: got 'ftp://x', wanted a URL such as http://127.0.0.1:8000");
  CHECK(error_with("prompt", "words") == "openai_cfg.prompt: got 'words', wanted auto, token_ids or text");
  CHECK(error_with("prompt", "text").starts_with("openai_cfg.tokenizer: "));  // this model has none
  CHECK(error_with("tokenizer", "/nowhere").find("wanted a folder with the tokenizer.json of the model") !=
        std::string::npos);
  CHECK(error_with("extra_body", {{"temperature", 1}}) ==
        "openai_cfg.extra_body: got temperature, which the bridge sets from policy.generation; leave it out");
  CHECK(error_with("extra_body", {1}) == "openai_cfg.extra_body: got [1], wanted a map");
  CHECK(error_with("api_key_env_var", "HEXAD_NO_SUCH") ==
        "openai_cfg.api_key_env_var: the environment has no variable HEXAD_NO_SUCH");
  CHECK(error_with("stall_timeout_s", 0) ==
        "openai_cfg.stall_timeout_s: got 0, wanted more than 0 seconds and at most 1e7");
}

TEST_CASE("further keys of extra_body are in each request") {
  const FakeOpenai server;
  Harness bridge(server, {{"extra_body", {{"user", "u"}, {"top_k", 5}}}});
  bridge.run({Wish{.id = 1}});
  const Json body = server.samples().at(0);
  CHECK(body.at("user") == "u");
  CHECK(body.at("top_k") == 5);
}

TEST_CASE("a generator of routed experts, or of weights, is another") {
  const FakeOpenai server;
  CHECK_THROWS_WITH_AS(Harness(server, {}, {{"refit_transport", "disk"}}),
                       doctest::Contains("refit_transport: got 'disk'. OpenAI-compatible servers take no weights"),
                       hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(Harness(server, {}, {{"return_routed_experts", true}}),
                       doctest::Contains("which this bridge does not fetch yet"), hexad::sdk::Error);
}

#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "judge.hpp"

namespace http_reward {
namespace {

using hexad::sdk::Config;
using hexad::sdk::fail;
using Json = nlohmann::ordered_json;

bool printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// The value of a variable, which is a secret from now on.
std::string secret(const std::string& key, const std::string& variable, Settings& settings) {
  const char* value = std::getenv(variable.c_str());
  if (!value || !*value)
    fail(HEXAD_INVALID_ARGUMENT, "%s: the variable %s of the environment is not set. Export it before hexad train",
         key.c_str(), variable.c_str());
  if (!printable(value))
    fail(HEXAD_INVALID_ARGUMENT, "%s: the variable %s holds a line end or another control character", key.c_str(),
         variable.c_str());
  settings.secrets.emplace_back(value);
  return value;
}

Json mapping(const Config& config, const char* key) {
  const Json value = Json::parse(config.json(key).value_or("{}"), nullptr, false);
  if (value.is_null()) return Json::object();
  const bool good = value.is_object() && std::all_of(value.begin(), value.end(), [](const Json& v) {
                      return v.is_string() && printable(v.get<std::string>());
                    });
  if (!good) fail(HEXAD_INVALID_ARGUMENT, "%s: want a mapping of texts, got %.200s", key, value.dump().c_str());
  return value;
}

void add_headers(const Config& config, Settings& settings) {
  settings.headers = {"Content-Type: application/json", "Expect:"};  // a long body is sent at once
  const Json plain = mapping(config, "headers"), secrets = mapping(config, "headers_env");
  for (const auto& entry : plain.items())
    settings.headers.push_back(entry.key() + ": " + entry.value().get<std::string>());
  for (const auto& entry : secrets.items())
    settings.headers.push_back(entry.key() + ": " +
                               secret("headers_env." + entry.key(), entry.value().get<std::string>(), settings));
  if (const std::string variable = config.get("api_key_env", ""); !variable.empty())
    settings.headers.push_back("Authorization: Bearer " + secret("api_key_env", variable, settings));
}

double positive(const Config& config, const char* key, double otherwise) {
  const double value = config.get(key, otherwise);
  if (!(value > 0)) fail(HEXAD_INVALID_ARGUMENT, "%s: want more than 0, got %g", key, value);
  return value;
}

int64_t within(const Config& config, const char* key, int64_t otherwise, int64_t least, int64_t most) {
  const int64_t value = config.get(key, otherwise);
  if (value < least || value > most)
    fail(HEXAD_INVALID_ARGUMENT, "%s: want %lld to %lld, got %lld", key, static_cast<long long>(least),
         static_cast<long long>(most), static_cast<long long>(value));
  return value;
}

// The URL without user, password and query, which are secrets.
std::string shown(const std::string& url, Settings& settings) {
  const size_t host = url.find("://") + 3, query = std::min(url.find_first_of("?#", host), url.size());
  const std::string rest = url.substr(host, query - host);
  const size_t at = rest.substr(0, rest.find('/')).rfind('@');
  if (query + 1 < url.size()) settings.secrets.push_back(url.substr(query + 1));
  if (at != rest.npos && at > 0) settings.secrets.push_back(rest.substr(0, at));
  return url.substr(0, host) + (at == rest.npos ? rest : rest.substr(at + 1));
}

std::optional<JudgeSettings> judge_from(const Config& config) {
  JudgeSettings judge;
  judge.model = config.get("judge.model", "");
  judge.prompt = config.get("judge.prompt", "");
  judge.system = config.get("judge.system", "");
  judge.max_tokens = within(config, "judge.max_tokens", 512, 1, 1 << 30);
  judge.temperature = config.get("judge.temperature", 0.0);
  judge.body = config.json("judge.body").value_or("{}");
  judge.score_regex = config.get("judge.score_regex", "");
  judge.score_json = config.get("judge.score_json", "");
  judge.score_min = config.get("judge.score_min", 0.0);
  judge.score_max = config.get("judge.score_max", 1.0);
  if (judge.model.empty() && judge.prompt.empty()) return std::nullopt;
  if (judge.model.empty() || judge.prompt.empty())
    fail(HEXAD_INVALID_ARGUMENT, "judge: want both model and prompt, got %s alone",
         judge.model.empty() ? "prompt" : "model");
  if (!Json::parse(judge.body, nullptr, false).is_object())
    fail(HEXAD_INVALID_ARGUMENT, "judge.body: want a mapping, got %.200s", judge.body.c_str());
  if (judge.score_regex.empty() == judge.score_json.empty())
    fail(HEXAD_INVALID_ARGUMENT, "judge: want one of score_regex ('Score: *([0-9.]+)') and score_json (/score), got %s",
         judge.score_regex.empty() ? "neither" : "both");
  if (!(judge.score_max > judge.score_min))
    fail(HEXAD_INVALID_ARGUMENT, "judge.score_max: want more than score_min, %g, got %g", judge.score_min,
         judge.score_max);
  const Judge checks_the_rest(judge);
  return judge;
}

}  // namespace

Settings settings_from(const Config& config) {
  Settings settings;
  settings.url = config.get("url", "");
  if (!settings.url.starts_with("http://") && !settings.url.starts_with("https://"))
    fail(HEXAD_INVALID_ARGUMENT, "url: want http://HOST:PORT/PATH or https://..., got '%.200s'", settings.url.c_str());
  settings.shown_url = shown(settings.url, settings);
  add_headers(config, settings);
  settings.timeout_s = positive(config, "timeout_s", 60);
  settings.backoff_s = positive(config, "backoff_s", 1);
  settings.deadline_s = positive(config, "deadline_s", 600);
  settings.retries = within(config, "retries", 4, 0, 1000);
  settings.max_concurrency = within(config, "max_concurrency", 16, 1, 4096);
  settings.batch_size = within(config, "batch_size", 1, 1, 1 << 20);
  settings.judge = judge_from(config);
  if (settings.judge && settings.batch_size > 1)
    fail(HEXAD_INVALID_ARGUMENT, "batch_size: want 1 for a judge, which sees one response at a time, got %lld",
         static_cast<long long>(settings.batch_size));
  return settings;
}

std::string redacted(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    for (size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + 3))
      text.replace(at, secret.size(), "***");
  }
  return text;
}

}  // namespace http_reward

#include "plugins/openai_bridge/settings.hpp"

#include <algorithm>
#include <filesystem>

namespace hexad::openai {
namespace {

using Json = nlohmann::ordered_json;

// That other keys of policy.generation say, or on which it rests how answers are read.
constexpr const char* kOwn[] = {"model",  "prompt",     "n",           "best_of", "echo",
                                "stream", "max_tokens", "temperature", "top_p"};

std::string read_prompt(const sdk::Config& config) {
  std::string prompt = config.get("openai_cfg.prompt", "auto");
  if (prompt == "auto" || prompt == "token_ids" || prompt == "text") return prompt;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "openai_cfg.prompt: got '%s', wanted auto, token_ids or text", prompt.c_str());
}

Json read_extra(const sdk::Config& config) {
  Json extra = bridge::subtree(config, "openai_cfg.extra_body");
  if (extra.is_null()) return Json::object();
  if (!extra.is_object())
    sdk::fail(HEXAD_INVALID_ARGUMENT, "openai_cfg.extra_body: got %s, wanted a map", extra.dump().c_str());
  for (const char* key : kOwn) {
    if (extra.contains(key)) {
      sdk::fail(HEXAD_INVALID_ARGUMENT,
                "openai_cfg.extra_body: got %s, which the bridge sets from policy.generation; leave it out", key);
    }
  }
  return extra;
}

// Written with or without the /v1 that clients of OpenAI want.
void drop_v1(std::vector<std::string>& urls) {
  for (std::string& url : urls)
    if (url.ends_with("/v1")) url.resize(url.size() - 3);
}

}  // namespace

Settings read_settings(const sdk::Config& config) {
  bridge::refuse_routed_experts(config);
  bridge::read_transport(config, {}, "OpenAI-compatible servers take no weights: leave the key out");
  constexpr const char* kSection = "openai_cfg";
  Settings s;
  bridge::Settings& common = s.common;
  common = bridge::read_requests(
      config, kSection, {.startup = bridge::Seconds(120), .probe = bridge::Seconds(60), .stall = bridge::Seconds(600)});
  common.spawn = bridge::read_spawn(config, kSection, {});
  common.takes_weights = false;
  drop_v1(common.urls);
  if (common.urls.empty() && common.spawn.command.empty()) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "openai_cfg.server_urls is missing: wanted the URLs of servers to ask, such as [http://127.0.0.1:8000]");
  }
  s.dialect.fixed.model = config.get("openai_cfg.model", "");
  if (s.dialect.fixed.model.empty())
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "openai_cfg.model is missing: wanted the name by which the servers know the model");
  s.dialect.fixed.logprobs = config.get("openai_cfg.logprobs", false);
  s.dialect.fixed.extra = read_extra(config);
  s.dialect.prompt = read_prompt(config);
  s.dialect.tokenizer = config.get("openai_cfg.tokenizer", "");
  const bool named = !s.dialect.tokenizer.empty();
  if (!named) s.dialect.tokenizer = common.model_name;
  const TextTokens text = s.dialect.text = TextTokens(s.dialect.tokenizer);
  if (!text.is_there() && (named || s.dialect.prompt == "text")) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "openai_cfg.tokenizer: %s; wanted a folder with the tokenizer.json of the model",
              text.why_not().c_str());
  }
  s.dialect.max_length = common.max_length;
  s.dialect.vocabulary = common.vocabulary;
  return s;
}

}  // namespace hexad::openai

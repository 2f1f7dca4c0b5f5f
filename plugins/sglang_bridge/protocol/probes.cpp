#include "plugins/sglang_bridge/protocol/probes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hexad::sglang {
namespace {

using bridge::Answer;
using bridge::Facts;
using bridge::Verdict;
using Json = nlohmann::ordered_json;

Json json_of(const Answer& answer) { return Json::parse(answer.body, nullptr, /*allow_exceptions=*/false); }

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Verdict read_model(const Answer& answer, Facts& facts) {
  if (answer.failed()) return {Verdict::trouble};
  const long status = answer.result.status;
  if (status == 401 || status == 403) {
    return {Verdict::wrong,
            fmt::format("it refuses the API key (status {}). Wanted: the key of the server in the variable that "
                        "policy.generation.sglang_cfg.api_key_env_var names",
                        status)};
  }
  const Json json = json_of(answer);
  if (!answer.ok() || !json.is_object() || !json.contains("is_generation"))
    return {Verdict::wrong, "it is no SGLang server: /model_info: " + answer.trouble()};
  if (json.at("is_generation") != true) return {Verdict::wrong, "its model generates nothing (is_generation)"};
  facts.generate = "/generate";
  facts.salts = true;  // extra_key
  facts.model_type = text_at(json, "model_type");
  facts.weight_version = text_at(json, "weight_version");
  return {};
}

Verdict read_server(const Answer& answer, Facts& facts) {
  if (answer.failed()) return {Verdict::trouble};
  const Json json = json_of(answer);
  if (!answer.ok() || !json.is_object())
    return {Verdict::wrong, "it is no SGLang server: /server_info: " + answer.trouble()};
  facts.version = text_at(json, "version");
  facts.sleeps = json.value("enable_memory_saver", Json()) == true;
  facts.routes = json.value("enable_return_routed_experts", Json()) == true;
  const Json length = json.value("context_length", Json());
  facts.max_length = length.is_number_integer() ? length.get<int64_t>() : 0;
  return {};
}

// A trainer that was killed may have left it paused, and it does not say so.
Verdict read_continue(const Answer& answer, Facts& facts) {
  if (answer.failed()) return {Verdict::trouble};
  facts.updates = answer.ok();
  return {};
}

// Draws a token.
Verdict read_health(const Answer& answer, Facts&) { return {answer.ok() ? Verdict::next : Verdict::trouble}; }

constexpr bridge::Probe kProbes[] = {{"/model_info", "GET", "/model_info", "", read_model},
                                     {"/server_info", "GET", "/server_info", "", read_server},
                                     {"/continue_generation", "POST", "/continue_generation", "{}", read_continue},
                                     {"/health", "GET", "/health", "", read_health}};

}  // namespace

std::span<const bridge::Probe> probes() { return kProbes; }

}  // namespace hexad::sglang

#include "plugins/vllm_bridge/protocol/probes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"

namespace hexad::vllm {
namespace {

using bridge::Answer;
using bridge::Facts;
using bridge::Verdict;
using Json = nlohmann::ordered_json;

// The first value of that name anywhere in the tree, as text; "" if there is none.
std::string find_text(const Json& tree, const std::string& name) {
  if (tree.is_object()) {
    if (const auto found = tree.find(name); found != tree.end() && found->is_primitive() && !found->is_null())
      return found->is_string() ? found->get<std::string>() : found->dump();
  }
  if (tree.is_structured()) {
    for (const Json& child : tree) {
      if (std::string text = find_text(child, name); !text.empty()) return text;
    }
  }
  return "";
}

// The backend of --weight-transfer-config.
std::string weight_transfer_of(const Json& info) {
  if (!info.is_object()) return "";
  const Json config = info.value("vllm_config", Json());
  return config.is_object() ? find_text(config.value("weight_transfer_config", Json()), "backend") : "";
}

// "none" of weights that are not quantised.
std::string quantization_of(const Json& info) {
  const Json config = info.is_object() ? info.value("/vllm_config/model_config"_json_pointer, Json()) : Json();
  if (!config.is_object() || !config.contains("quantization")) return "";
  return config.at("quantization").is_string() ? config.at("quantization").get<std::string>() : "none";
}

// Where vLLM speculates on a CPU and a request is not greedy, it divides logits by memory that nothing has been written
// to, and filters by such: seen with 0.26.0, vllm-project/vllm#55005. (0.24.0 does not start so.)
bool draws_wrong(const Json& info) {
  const Json config = info.is_object() ? info.value("vllm_config", Json()) : Json();
  return config.is_object() && config.value("speculative_config", Json()).is_object() &&
         find_text(config.value("device_config", Json()), "device") == "cpu";
}

Json json_of(const Answer& answer) {
  return answer.ok() ? Json::parse(answer.body, nullptr, /*allow_exceptions=*/false) : Json();
}

Verdict read_health(const Answer& answer, Facts&) { return {answer.ok() ? Verdict::next : Verdict::trouble}; }

Verdict read_version(const Answer& answer, Facts& facts) {
  if (answer.failed()) return {Verdict::trouble};
  facts.version = find_text(json_of(answer), "version");
  facts.salts = capabilities_of(facts.version).cache_salt;
  if (!too_old(facts.version)) return {};
  return {Verdict::wrong,
          fmt::format("vLLM {} is older than {}, the oldest that this bridge is for", facts.version, kOldestVersion)};
}

Verdict read_api(const Answer& answer, Facts& facts) {
  const long status = answer.result.status;
  if (answer.failed()) return {Verdict::trouble};
  if (status == 401 || status == 403) {
    return {Verdict::wrong,
            fmt::format("it refuses the API key (status {}). Wanted: the key of the server in the variable that "
                        "policy.generation.vllm_cfg.api_key_env_var names",
                        status)};
  }
  const bool completions = status == 404 || status == 405 || status == 501;
  facts.generate = path_of(completions ? GenerationApi::completions : GenerationApi::tokens);
  return {};
}

Verdict read_dev_mode(const Answer& answer, Facts& facts) {
  if (answer.failed()) return {Verdict::trouble};
  facts.updates = answer.ok();
  facts.paused = find_text(json_of(answer), "is_paused") == "true";
  return {facts.updates ? Verdict::next : Verdict::ready};
}

Verdict read_config(const Answer& answer, Facts& facts) {
  // A version that cannot say it all answers with an error, and serves all the same.
  if (!answer.result.complete) return {Verdict::trouble};
  const Json json = json_of(answer);
  facts.logprobs_mode = find_text(json, "logprobs_mode");
  facts.quantization = quantization_of(json);
  facts.greedy_only = draws_wrong(json);
  facts.sleeps = find_text(json, "enable_sleep_mode") == "true";
  facts.weight_transfer = capabilities_of(facts.version).weight_transfer ? weight_transfer_of(json) : "";
  return {};
}

constexpr bridge::Probe kProbes[] = {{"/health", "GET", "/health", "", read_health},
                                     {"/version", "GET", "/version", "", read_version},
                                     {"probe of the generation API", "POST", "/inference/v1/generate", "{}", read_api},
                                     {"/is_paused", "GET", "/is_paused", "", read_dev_mode},
                                     {"/server_info", "GET", "/server_info?config_format=json", "", read_config}};

}  // namespace

std::span<const bridge::Probe> probes() { return kProbes; }

}  // namespace hexad::vllm

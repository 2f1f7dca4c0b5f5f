#include "plugins/vllm_bridge/dialect.hpp"

#include <nlohmann/json.hpp>

#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"
#include "plugins/vllm_bridge/protocol/probes.hpp"
#include "plugins/vllm_bridge/refit/ipc/channel.hpp"
#include "plugins/vllm_bridge/refit/nccl/channel.hpp"

namespace hexad::vllm {

using Json = nlohmann::ordered_json;

void Dialect::launch(server::Command& command, const bridge::Launch& launch) const {
  command.arguments.insert(command.arguments.end(),
                           {"--model", launch.model_dir, "--host", "127.0.0.1", "--port", std::to_string(launch.port)});
  command.environment["VLLM_API_KEY"] = launch.api_key;
}

std::span<const bridge::Probe> Dialect::probes() const { return vllm::probes(); }

// Another form of weights would be loaded as if it were this one: a server that says nothing is taken at its word.
std::string Dialect::mismatch(const Facts& facts) const {
  if (!fp8_) return "";
  if (!facts.version.empty() && !capabilities_of(facts.version).reloads_fp8)
    return "vLLM " + facts.version + " is older than 0.24, the oldest that is given weights in FP8 here";
  const std::string wanted = fp8::quantization_of(*fp8_);
  if (facts.quantization.empty() || facts.quantization == wanted) return "";
  return "its quantization is " + facts.quantization +
         ", and vllm_cfg.precision is fp8. Start it with --quantization fp8 --hf-overrides '" +
         Json{{"quantization_config", fp8::quantization_config(*fp8_)}}.dump() + "'";
}

std::string Dialect::body_of(const Facts& facts, const bridge::Ask& ask) const {
  return vllm::body_of(api_at(facts.generate), ask);
}

bridge::Chunk Dialect::parse(const Facts& facts, std::string_view data, std::span<const int32_t>) const {
  return parse_chunk(api_at(facts.generate), data);
}

// raw_logprobs are those before temperature and filters.
std::optional<Doubt> Dialect::doubt(const Facts& facts, const bridge::Request& request) const {
  if (facts.greedy_only && request.temperature != 0) {
    return Doubt{.refuses = true,
                 .text =
                     " speculates on a CPU, where vLLM draws from another distribution than the model's "
                     "(vllm-project/vllm#55005): only greedy requests are right. Start it without speculative_config",
                 .about = "it is not greedy"};
  }
  if (request.plain() || request.temperature == 0) return std::nullopt;
  if (facts.logprobs_mode.empty()) {
    return Doubt{.refuses = false,
                 .text =
                     " does not say its logprobs_mode: with a temperature or a filter its log-probs are those of "
                     "the distribution drawn from only if it was started with --logprobs-mode "
                     "processed_logprobs"};
  }
  if (!facts.logprobs_mode.starts_with("raw")) return std::nullopt;
  return Doubt{.refuses = true,
               .text = " has " + facts.logprobs_mode +
                       ": those log-probs are not of the distribution that is drawn from. Start the server with "
                       "--logprobs-mode processed_logprobs",
               .about = "it has a temperature, top_k, top_p or min_p"};
}

Post Dialect::load(const std::string& dir, int64_t) const {
  return {"/collective_rpc", Json{{"method", "reload_weights"}, {"kwargs", {{"weights_path", dir}}}}.dump()};
}

// A false answer matters only where no salt keeps old prefixes apart: a running request holds its blocks.
bool Dialect::flushed(const Facts& facts, const Answer& answer) const {
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  return answer.ok() && (facts.salts || !json.is_object() || json.value("success", Json(true)) == true);
}

std::unique_ptr<bridge::FormedBucket> Dialect::formed(const sdk::Call& call, const hexad_weight_list& bucket) const {
  return fp8_ ? fp8::formed(call, *fp8_, bucket) : nullptr;
}

std::unique_ptr<bridge::Channel> Dialect::channel(const std::string& transport, bridge::Control& control) const {
  if (transport == "ipc") return std::make_unique<IpcChannel>(control, patience_);
  return std::make_unique<NcclChannel>(control, patience_, refit_address_);
}

std::string Dialect::wants_updates() const {
  return "has no development endpoints, through which weights are loaded. Start it with VLLM_SERVER_DEV_MODE=1 in its "
         "environment, on an address that only this run can reach";
}

std::string Dialect::wants_transport(const std::string& transport) const {
  return "Start it, vLLM 0.24 or newer, with --weight-transfer-config '" + Json{{"backend", transport}}.dump() + "'";
}

}  // namespace hexad::vllm

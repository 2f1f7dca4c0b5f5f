#include "plugins/vllm_bridge/settings.hpp"

#include <algorithm>

#include "modeling/refit/nccl/sender.hpp"
#include "plugins/vllm_bridge/arguments.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

std::string read_transport(const sdk::Call& call, const sdk::Config& config) {
  std::string transport =
      bridge::read_transport(config, {"disk", "ipc", "nccl"},
                             "Weights reach vLLM by disk, ipc or nccl; without the key by what its servers offer");
  bridge::check_has_gpu(call, transport);
  return transport;
}

// What of vllm_cfg a server is started with.
Json server_cfg(const sdk::Config& config, const Settings& s) {
  const std::string precision = config.get("vllm_cfg.precision", config.get("precision", "auto"));
  // What is not quantised, and activations between linears, are in bf16, as NeMo-RL has them.
  Json cfg = {{"precision", s.fp8 ? "bfloat16" : precision},
              {"logprobs_mode", s.logprobs_mode},
              {"gpu_memory_utilization", config.get("vllm_cfg.gpu_memory_utilization", 0.6)},
              {"expert_parallel_size", config.get<int64_t>("vllm_cfg.expert_parallel_size", 1)},
              {"enable_expert_parallel", config.get("vllm_cfg.enable_expert_parallel", false)},
              {"enforce_eager", config.get("vllm_cfg.enforce_eager", false)},
              {"load_format", config.get("vllm_cfg.load_format", "auto")},
              {"kv_cache_dtype", config.get("vllm_cfg.kv_cache_dtype", "auto")}};
  const auto length = config.find<int64_t>("vllm_cfg.max_model_len");
  if (length || s.common.max_length > 0) cfg["max_model_len"] = length.value_or(s.common.max_length);
  // A server has one rank of each kind without being told.
  for (const char* size : kSizes) {
    const auto ranks = config.get<int64_t>((std::string("vllm_cfg.") + size).c_str(), 1);
    if (ranks != 1) cfg[size] = ranks;
  }
  if (const auto executor = config.find<std::string>("vllm_cfg.distributed_executor_backend"))
    cfg["distributed_executor_backend"] = *executor;
  if (const auto caching = config.find<bool>("vllm_cfg.enable_prefix_caching")) cfg["enable_prefix_caching"] = *caching;
  return cfg;
}

// Of servers of our own. Asked for alone: for CUDA IPC vLLM unpickles what is sent to a port without a key. What the
// operator said of it stays.
void offer_weight_transfer(const std::string& transport, bridge::SpawnSettings& spawn) {
  if (transport != "ipc" && transport != "nccl") return;
  const std::string option = "--weight-transfer-config";
  if (std::ranges::find(spawn.arguments, option) == spawn.arguments.end()) {
    spawn.arguments.push_back(option);
    spawn.arguments.push_back(Json{{"backend", transport}}.dump());
  }
  if (transport == "ipc") spawn.environment.emplace("VLLM_ALLOW_INSECURE_SERIALIZATION", "1");
  if (const std::string path = refit::nccl_path(); transport == "nccl" && !path.empty())
    spawn.environment.emplace("VLLM_NCCL_SO_PATH", path);
}

}  // namespace

Settings read_settings(const sdk::Call& call, const sdk::Config& config) {
  bridge::refuse_routed_experts(config);
  Settings s;
  s.common = bridge::read_common(config, "vllm_cfg", {"python3", "-m", "vllm.entrypoints.openai.api_server"});
  s.common.vocabulary = 0;  // vLLM refuses such requests itself
  s.logprobs_mode = config.get("vllm_cfg.logprobs_mode", "processed_logprobs");
  s.refit_address = config.get("vllm_cfg.refit_address", "127.0.0.1");
  s.common.transport = read_transport(call, config);
  const bool cuda = call.device().device_type == kDLCUDA;
  const Json env_vars = bridge::subtree(config, "vllm_cfg.env_vars");
  s.fp8 = fp8::read_recipe(config, s.common.model_name);
  Json cfg = server_cfg(config, s), kwargs = bridge::subtree(config, "vllm_kwargs");
  if (s.fp8) add_quantization(*s.fp8, cfg, kwargs);
  drop_no_speculation(kwargs);
  refuse_ipc_of_several(s.common.transport, cfg, kwargs);
  if (cuda && s.common.urls.empty()) refuse_several_devices(cfg, kwargs, env_vars);
  s.common.spawn.arguments = server_arguments(cfg, kwargs, cuda);
  s.common.spawn.environment = server_environment(
      env_vars, call.device(), s.fp8 ? fp8::environment(*s.fp8) : std::map<std::string, std::string>());
  if (cuda) offer_weight_transfer(s.common.transport, s.common.spawn);
  return s;
}

}  // namespace hexad::vllm

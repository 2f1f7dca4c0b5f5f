#include "plugins/vllm_bridge/arguments.hpp"

#include <utility>

#include "plugins/server_bridge/arguments.hpp"
#include "plugins/server_bridge/settings.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

void add_option(std::vector<std::string>& to, const std::string& name, const Json& value) {
  if (value.is_null()) return;
  if (value.is_boolean()) return to.push_back(bridge::option_of(name, value.get<bool>() ? "" : "no-"));
  bridge::add_valued_option(to, name, value);
}

// vLLM's own name where it differs; of those that have no place on a CPU, `cuda` alone.
struct Key {
  const char* name;
  const char* option;
  bool cuda_only = false;
};
constexpr Key kKeys[] = {{"precision", "dtype"},
                         {"max_model_len", "max_model_len"},
                         {"logprobs_mode", "logprobs_mode"},
                         {"tensor_parallel_size", "tensor_parallel_size"},
                         {"pipeline_parallel_size", "pipeline_parallel_size"},
                         {"data_parallel_size", "data_parallel_size"},
                         {"quantization", "quantization"},
                         {"hf_overrides", "hf_overrides"},
                         {"distributed_executor_backend", "distributed_executor_backend"},
                         {"enable_prefix_caching", "enable_prefix_caching"},
                         {"gpu_memory_utilization", "gpu_memory_utilization", true}};

}  // namespace

std::vector<std::string> server_arguments(const Json& vllm_cfg, const Json& kwargs, bool cuda) {
  bridge::refuse_kwargs(kwargs, "vllm", {"model", "host", "port", "uds", "api_key", "api-key"});
  std::vector<std::string> result;
  const auto given = [&](const char* name) { return kwargs.is_object() && kwargs.contains(name); };
  const auto value = [&](const char* name) { return vllm_cfg.is_object() ? vllm_cfg.value(name, Json()) : Json(); };
  for (const Key& key : kKeys) {
    if (!given(key.option) && (cuda || !key.cuda_only)) add_option(result, key.option, value(key.name));
  }
  // vLLM spreads experts over all ranks of a layer or over none: NeMo-RL's number of them only says which.
  const Json experts = value("expert_parallel_size");
  const bool spread = value("enable_expert_parallel") == true || (experts.is_number_integer() && experts > 1);
  if (!given("enforce_eager") && value("enforce_eager") == true) add_option(result, "enforce_eager", true);
  if (!given("enable_expert_parallel") && spread) add_option(result, "enable_expert_parallel", true);
  // NeMo-RL's and ROLL's configs say dummy, as their trainers push weights before the first sample: real ones do no
  // harm.
  if (const Json format = value("load_format"); !given("load_format") && format != "auto" && format != "dummy")
    add_option(result, "load_format", format);
  if (const Json type = value("kv_cache_dtype"); !given("kv_cache_dtype") && type != "auto")
    add_option(result, "kv_cache_dtype", type);
  if (cuda && !given("enable_sleep_mode")) add_option(result, "enable_sleep_mode", true);
  if (kwargs.is_object()) {
    for (const auto& [name, argument] : kwargs.items()) add_option(result, name, argument);
  }
  return result;
}

void refuse_several_devices(const Json& vllm_cfg, const Json& kwargs, const Json& env_vars) {
  bridge::refuse_several_devices(vllm_cfg, kwargs, env_vars, "vllm", "a vLLM server", kSizes);
}

void add_quantization(const fp8::Recipe& recipe, Json& vllm_cfg, Json& kwargs) {
  if (!kwargs.is_object()) kwargs = Json::object();
  Json overrides = kwargs.value("hf_overrides", Json::object());
  const bool another = kwargs.contains("quantization") || !(overrides.is_object() || overrides.is_null()) ||
                       (overrides.is_object() && overrides.contains("quantization_config"));
  if (another) {
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "vllm_kwargs: got a quantization of its own (%s), and vllm_cfg.precision is fp8, which says what weights the "
        "server is sent; leave one of them out",
        kwargs.contains("quantization") ? "quantization" : "hf_overrides");
  }
  // NeMo-RL's own name for both forms: vLLM takes MX from the override.
  vllm_cfg["quantization"] = "fp8";
  vllm_cfg["hf_overrides"] = {{"quantization_config", fp8::quantization_config(recipe)}};
  if (overrides.is_object()) vllm_cfg["hf_overrides"].update(overrides);
  kwargs.erase("hf_overrides");
}

void drop_no_speculation(Json& kwargs) {
  if (!kwargs.is_object() || !kwargs.contains("speculative_config")) return;
  const Json& config = kwargs.at("speculative_config");
  if (config.is_object() && config.value("num_speculative_tokens", Json()) == 0) kwargs.erase("speculative_config");
}

void refuse_ipc_of_several(const std::string& transport, const Json& vllm_cfg, const Json& kwargs) {
  if (transport != "ipc") return;
  for (const char* key : kSizes) {
    const bool given = kwargs.is_object() && kwargs.contains(key);
    const Json size = (given ? kwargs : vllm_cfg).value(key, Json());
    if (size.is_null() || size == 1) continue;
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "refit_transport: got 'ipc', and vllm_%s.%s is %s: CUDA IPC reaches this rank's own GPU alone. Wanted nccl "
        "or disk",
        given ? "kwargs" : "cfg", key, size.dump().c_str());
  }
}

std::map<std::string, std::string> server_environment(const Json& env_vars, DLDevice device,
                                                      const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> result = {{"VLLM_SERVER_DEV_MODE", "1"}, {"HF_HUB_OFFLINE", "1"}};
  if (device.device_type == kDLCUDA) {
    result["CUDA_VISIBLE_DEVICES"] = bridge::outer_device(device);
  } else {
    result["VLLM_CPU_KVCACHE_SPACE"] = "1";  // GiB
    result["VLLM_CPU_OMP_THREADS_BIND"] = "nobind";
  }
  result.insert(more.begin(), more.end());
  return bridge::with_variables(std::move(result), env_vars);
}

}  // namespace hexad::vllm

#include "plugins/vllm_bridge/arguments.hpp"

#include <algorithm>
#include <set>

#include "plugins/server_bridge/settings.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void add_option(std::vector<std::string>& to, std::string name, const Json& value) {
  std::replace(name.begin(), name.end(), '_', '-');
  if (value.is_null()) return;
  if (value.is_boolean()) return to.push_back((value.get<bool>() ? "--" : "--no-") + name);
  to.push_back("--" + name);
  if (value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& v) { return v.is_structured(); })) {
    for (const Json& element : value) to.push_back(text_of(element));
  } else {
    to.push_back(text_of(value));
  }
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
                         {"distributed_executor_backend", "distributed_executor_backend"},
                         {"enable_prefix_caching", "enable_prefix_caching"},
                         {"gpu_memory_utilization", "gpu_memory_utilization", true}};

// A server that starts again would serve random weights.
void refuse_dummy(const Json& kwargs) {
  if (!kwargs.is_object() || kwargs.value("load_format", Json()) != "dummy") return;
  sdk::fail(
      HEXAD_INVALID_ARGUMENT,
      "vllm_kwargs.load_format: got 'dummy'. A server that starts again would serve random weights; leave the key "
      "out: a model without weights is started with those of the first update");
}

// What the bridge itself decides.
void refuse_reserved(const Json& kwargs) {
  static const std::set<std::string> reserved = {"model", "host", "port", "uds", "api_key", "api-key"};
  if (!kwargs.is_object()) return;
  for (const auto& [name, value] : kwargs.items()) {
    if (reserved.contains(name)) {
      sdk::fail(HEXAD_INVALID_ARGUMENT,
                "vllm_kwargs.%s: the bridge sets it. To use a server of your own, start it and "
                "name it in vllm_cfg.server_urls",
                name.c_str());
    }
  }
}

}  // namespace

std::vector<std::string> server_arguments(const Json& vllm_cfg, const Json& kwargs, bool cuda) {
  refuse_dummy(kwargs);
  refuse_reserved(kwargs);
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
  if (env_vars.is_object() && env_vars.contains("CUDA_VISIBLE_DEVICES")) return;
  for (const char* key : {"tensor_parallel_size", "pipeline_parallel_size"}) {
    const bool given = kwargs.is_object() && kwargs.contains(key);
    const Json& from = given ? kwargs : vllm_cfg;
    const Json size = from.is_object() ? from.value(key, Json()) : Json();
    if (size.is_null() || size == 1) continue;
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "%s.%s: got %s, wanted 1: a vLLM server is given its rank's one CUDA device. For more, name them all in "
              "vllm_cfg.env_vars.CUDA_VISIBLE_DEVICES",
              given ? "vllm_kwargs" : "vllm_cfg", key, size.dump().c_str());
  }
}

std::map<std::string, std::string> server_environment(const Json& env_vars, DLDevice device) {
  std::map<std::string, std::string> result = {{"VLLM_SERVER_DEV_MODE", "1"}, {"HF_HUB_OFFLINE", "1"}};
  if (device.device_type == kDLCUDA) {
    result["CUDA_VISIBLE_DEVICES"] = bridge::outer_device(device);
  } else {
    result["VLLM_CPU_KVCACHE_SPACE"] = "1";  // GiB
    result["VLLM_CPU_OMP_THREADS_BIND"] = "nobind";
  }
  if (env_vars.is_object()) {
    for (const auto& [name, value] : env_vars.items()) result[name] = text_of(value);
  }
  return result;
}

}  // namespace hexad::vllm

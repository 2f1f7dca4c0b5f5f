#include "plugins/sglang_bridge/arguments.hpp"

#include <utility>

#include "plugins/server_bridge/arguments.hpp"
#include "plugins/server_bridge/settings.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

// SGLang's switches are off where they are not named.
void add_flag(std::vector<std::string>& to, const std::string& name, const Json& value) {
  if (value.is_null() || value == false) return;
  if (value == true) return to.push_back(bridge::option_of(name));
  bridge::add_valued_option(to, name, value);
}

}  // namespace

std::vector<std::string> server_arguments(const Json& cfg, const Json& kwargs, bool cuda) {
  bridge::refuse_kwargs(kwargs, "sglang", {"model", "model_path", "host", "port", "api_key", "config"});
  std::vector<std::string> result;
  const auto given = [&](const std::string& name) { return kwargs.is_object() && kwargs.contains(name); };
  if (!cuda && !given("device")) add_flag(result, "device", "cpu");
  const Json server = cfg.value("sglang_server_config", Json::object());
  if (server.is_object() && server.value("needs_offload", Json()) == true)
    add_flag(result, "enable_memory_saver", true);
  if (server.is_object() && server.value("cpu_weight_backup", Json()) == true)
    add_flag(result, "enable_weights_cpu_backup", true);
  for (const auto& [name, value] : cfg.items()) {
    if (name != "sglang_server_config" && !given(name)) add_flag(result, name, value);
  }
  if (kwargs.is_object()) {
    for (const auto& [name, value] : kwargs.items()) add_flag(result, name, value);
  }
  return result;
}

void refuse_several_devices(const Json& cfg, const Json& kwargs, const Json& env_vars) {
  constexpr const char* kSizes[] = {"tp_size", "pp_size", "dp_size", "ep_size"};
  bridge::refuse_several_devices(cfg, kwargs, env_vars, "sglang", "an SGLang server", kSizes);
}

void refuse_nccl_on_one_gpu(const std::string& transport, const Json& env_vars) {
  if (transport != "nccl" || (env_vars.is_object() && env_vars.contains("CUDA_VISIBLE_DEVICES"))) return;
  sdk::fail(
      HEXAD_INVALID_ARGUMENT,
      "refit_transport: got 'nccl', and a server that a rank starts is on the rank's own GPU, of which NCCL takes "
      "one process: use ipc, or name the server's GPUs in sglang_cfg.env_vars.CUDA_VISIBLE_DEVICES");
}

std::map<std::string, std::string> server_environment(const Json& env_vars, DLDevice device) {
  std::map<std::string, std::string> result = {{"HF_HUB_OFFLINE", "1"}};
  if (device.device_type == kDLCUDA) {
    result["CUDA_VISIBLE_DEVICES"] = bridge::outer_device(device);
  } else {
    result["SGLANG_USE_CPU_ENGINE"] = "1";
  }
  return bridge::with_variables(std::move(result), env_vars);
}

}  // namespace hexad::sglang

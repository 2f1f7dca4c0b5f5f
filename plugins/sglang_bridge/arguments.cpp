#include "plugins/sglang_bridge/arguments.hpp"

#include <algorithm>
#include <set>

#include "plugins/server_bridge/settings.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// SGLang's switches are off where they are not named.
void add_flag(std::vector<std::string>& to, std::string name, const Json& value) {
  std::replace(name.begin(), name.end(), '_', '-');
  if (value.is_null() || value == false) return;
  to.push_back("--" + name);
  if (value == true) return;
  if (value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& v) { return v.is_structured(); })) {
    for (const Json& element : value) to.push_back(text_of(element));
  } else {
    to.push_back(text_of(value));
  }
}

// A server that starts again would serve random weights.
void refuse_dummy(const Json& kwargs) {
  if (!kwargs.is_object() || kwargs.value("load_format", Json()) != "dummy") return;
  sdk::fail(HEXAD_INVALID_ARGUMENT,
            "sglang_kwargs.load_format: got 'dummy'. A server that starts again would serve random weights; leave the "
            "key out: a model without weights is started with those of the first update");
}

// What the bridge itself decides.
void refuse_reserved(const Json& kwargs) {
  static const std::set<std::string> reserved = {"model", "model_path", "host", "port", "api_key", "config"};
  if (!kwargs.is_object()) return;
  for (const auto& [name, value] : kwargs.items()) {
    if (reserved.contains(name)) {
      sdk::fail(HEXAD_INVALID_ARGUMENT,
                "sglang_kwargs.%s: the bridge sets it. To use a server of your own, start it and name it in "
                "sglang_cfg.server_urls",
                name.c_str());
    }
  }
}

}  // namespace

std::vector<std::string> server_arguments(const Json& cfg, const Json& kwargs, bool cuda) {
  refuse_dummy(kwargs);
  refuse_reserved(kwargs);
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
  if (env_vars.is_object() && env_vars.contains("CUDA_VISIBLE_DEVICES")) return;
  for (const char* key : {"tp_size", "pp_size", "dp_size", "ep_size"}) {
    const bool given = kwargs.is_object() && kwargs.contains(key);
    const Json size = (given ? kwargs : cfg).value(key, Json());
    if (size.is_null() || size == 1) continue;
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "%s.%s: got %s, wanted 1: an SGLang server is given its rank's one CUDA device. For more, name them all "
              "in sglang_cfg.env_vars.CUDA_VISIBLE_DEVICES",
              given ? "sglang_kwargs" : "sglang_cfg", key, size.dump().c_str());
  }
}

std::map<std::string, std::string> server_environment(const Json& env_vars, DLDevice device) {
  std::map<std::string, std::string> result = {{"HF_HUB_OFFLINE", "1"}};
  if (device.device_type == kDLCUDA) {
    result["CUDA_VISIBLE_DEVICES"] = bridge::outer_device(device);
  } else {
    result["SGLANG_USE_CPU_ENGINE"] = "1";
  }
  if (env_vars.is_object()) {
    for (const auto& [name, value] : env_vars.items()) result[name] = text_of(value);
  }
  return result;
}

}  // namespace hexad::sglang

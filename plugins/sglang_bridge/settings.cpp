#include "plugins/sglang_bridge/settings.hpp"

#include "plugins/sglang_bridge/arguments.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPauseMode = "sglang_cfg.sglang_server_config.pause_generation_mode";

std::string read_pause_mode(const sdk::Config& config) {
  const std::string mode = config.get(kPauseMode, "retract");
  if (mode == "retract" || mode == "in_place" || mode == "abort") return mode;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got '%s', wanted retract, in_place or abort", kPauseMode, mode.c_str());
}

int64_t read_stream_interval(const sdk::Config& config) {
  const auto tokens = config.get<int64_t>("sglang_cfg.stream_interval", 32);
  if (tokens >= 1) return tokens;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "sglang_cfg.stream_interval: got %lld, wanted at least 1",
            static_cast<long long>(tokens));
}

// What a server is started with, where the section does not say it.
Json server_cfg(const sdk::Config& config, const bridge::Settings& s) {
  Json cfg = bridge::subtree(config, "sglang_cfg");
  if (!cfg.is_object()) cfg = Json::object();
  if (!cfg.contains("dtype")) cfg["dtype"] = config.get("precision", "auto");
  if (!cfg.contains("context_length") && s.max_length > 0) cfg["context_length"] = s.max_length;
  return cfg;
}

}  // namespace

Settings read_settings(const sdk::Call& call, const sdk::Config& config) {
  bridge::refuse_routed_experts(config);
  Settings s;
  s.common = bridge::read_common(config, "sglang_cfg", {"python3", "-m", "sglang.launch_server"});
  if (s.common.vocabulary <= 0) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "model_name: the config.json of %s has no vocab_size; wanted it, as a token id outside of the vocabulary "
              "ends an SGLang server",
              s.common.model_name.c_str());
  }
  s.common.transport = bridge::read_transport(
      config, {"disk"},
      "Weights reach SGLang by disk: leave the key out, or set it to disk. SGLang's groups for gloo and NCCL and its "
      "CUDA IPC are not built");
  s.dialect.model_type = s.common.model_type;
  s.dialect.max_length = s.common.max_length;
  s.dialect.pause_mode = read_pause_mode(config);
  s.dialect.stream_interval = read_stream_interval(config);
  const bool cuda = call.device().device_type == kDLCUDA;
  const Json env_vars = bridge::subtree(config, "sglang_cfg.env_vars");
  const Json cfg = server_cfg(config, s.common), kwargs = bridge::subtree(config, "sglang_kwargs");
  if (cuda && s.common.urls.empty()) refuse_several_devices(cfg, kwargs, env_vars);
  s.common.spawn.arguments = server_arguments(cfg, kwargs, cuda);
  s.common.spawn.environment = server_environment(env_vars, call.device());
  return s;
}

}  // namespace hexad::sglang

#include "plugins/sglang_bridge/settings.hpp"

#include "plugins/server_bridge/arguments.hpp"
#include "plugins/sglang_bridge/arguments.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

const std::string kServer = "sglang_cfg.sglang_server_config.";

// What becomes of requests that run: as the key says, else what NeMo-RL's keys of asynchronous runs ask for.
std::string read_pause_mode(const sdk::Config& config) {
  const std::string key = kServer + "pause_generation_mode";
  if (const Json mode = bridge::subtree(config, key); !mode.is_null()) {
    if (mode == "retract" || mode == "in_place" || mode == "abort") return mode.get<std::string>();
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got '%s', wanted retract, in_place or abort", key.c_str(),
              bridge::word_of(mode).c_str());
  }
  const Json runs = bridge::subtree(config, kServer + "in_flight_weight_updates");
  const Json anew = bridge::subtree(config, kServer + "recompute_kv_cache_after_weight_updates");
  if (runs == true && anew == false) return "in_place";
  return runs == false ? "abort" : "retract";
}

int64_t read_stream_interval(const sdk::Config& config) {
  const auto tokens = config.get<int64_t>("sglang_cfg.stream_interval", 32);
  if (tokens >= 1) return tokens;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "sglang_cfg.stream_interval: got %lld, wanted at least 1",
            static_cast<long long>(tokens));
}

// Of sglang_cfg, what is a flag of the server by the same name.
constexpr const char* kFlags[] = {"dtype",
                                  "context_length",
                                  "max_running_requests",
                                  "random_seed",
                                  "skip_tokenizer_init",
                                  "disable_cuda_graph",
                                  "disable_radix_cache",
                                  "disable_cuda_graph_padding",
                                  "disable_piecewise_cuda_graph",
                                  "cuda_graph_backend_decode",
                                  "cuda_graph_backend_prefill",
                                  "enable_nccl_nvls",
                                  "disable_outlines_disk_cache",
                                  "disable_custom_all_reduce",
                                  "disable_overlap_schedule",
                                  "enable_mixed_chunk",
                                  "enable_dp_attention",
                                  "enable_deepep_moe",
                                  "enable_ep_moe",
                                  "enable_torch_compile",
                                  "torch_compile_max_bs",
                                  "cuda_graph_max_bs_decode",
                                  "cuda_graph_max_bs_prefill",
                                  "cuda_graph_bs_decode",
                                  "cuda_graph_bs_prefill",
                                  "torchao_config",
                                  "enable_nan_detection",
                                  "enable_p2p_check",
                                  "triton_attention_reduce_in_fp32",
                                  "triton_attention_num_kv_splits",
                                  "num_continuous_decode_steps",
                                  "allow_auto_truncate",
                                  "attention_backend",
                                  "enable_multimodal",
                                  "sampling_backend",
                                  "mem_fraction_static",
                                  "chunked_prefill_size",
                                  "max_prefill_tokens",
                                  "schedule_policy",
                                  "schedule_conservativeness",
                                  "cpu_offload_gb",
                                  "kv_cache_dtype",
                                  "tp_size",
                                  "dp_size",
                                  "pp_size",
                                  "ep_size",
                                  "log_level",
                                  "log_level_http",
                                  "log_requests",
                                  "log_requests_level",
                                  "show_time_cost",
                                  "enable_metrics",
                                  "decode_log_interval",
                                  "skip_server_warmup"};

// What a server is started with, where the section does not say it.
Json server_cfg(const sdk::Config& config, const bridge::Settings& s) {
  Json cfg = Json::object();
  for (const char* flag : kFlags)
    if (Json value = bridge::subtree(config, std::string("sglang_cfg.") + flag); !value.is_null()) cfg[flag] = value;
  for (const char* flag : {"needs_offload", "cpu_weight_backup"})
    cfg["sglang_server_config"][flag] = bridge::subtree(config, std::string("sglang_cfg.sglang_server_config.") + flag);
  if (!cfg.contains("dtype")) cfg["dtype"] = config.get("precision", "auto");
  if (s.routes) cfg["enable_return_routed_experts"] = true;
  if (!cfg.contains("context_length") && s.max_length > 0) cfg["context_length"] = s.max_length;
  return cfg;
}

std::string read_transport(const sdk::Call& call, const sdk::Config& config) {
  std::string transport =
      bridge::read_transport(config, {"disk", "gloo", "ipc", "nccl"},
                             "Weights reach SGLang by disk, gloo, ipc or nccl; without the key by disk");
  bridge::check_has_gpu(call, transport);
  return transport;
}

}  // namespace

Settings read_settings(const sdk::Call& call, const sdk::Config& config) {
  Settings s;
  s.common = bridge::read_common(config, "sglang_cfg", {"python3", "-m", "sglang.launch_server"});
  if (s.common.vocabulary <= 0) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "model_name: the config.json of %s has no vocab_size; wanted it, as a token id outside of the vocabulary "
              "ends an SGLang server",
              s.common.model_name.c_str());
  }
  s.common.transport = read_transport(call, config);
  if (config.get("return_routed_experts", false)) s.common.routes = bridge::read_route_shape(s.common.model_name);
  s.dialect.wants_routes = s.common.routes.has_value();
  s.dialect.model_type = s.common.model_type;
  s.dialect.max_length = s.common.max_length;
  s.dialect.pause_mode = read_pause_mode(config);
  s.dialect.stream_interval = read_stream_interval(config);
  s.dialect.refit_address = config.get("sglang_cfg.refit_address", "127.0.0.1");
  s.dialect.patience = s.common.deadlines.control;
  s.dialect.goodbye = s.common.deadlines.probe;
  const bool cuda = call.device().device_type == kDLCUDA;
  const Json env_vars = bridge::subtree(config, "sglang_cfg.env_vars");
  const Json cfg = server_cfg(config, s.common), kwargs = bridge::subtree(config, "sglang_kwargs");
  if (cuda && s.common.urls.empty()) {
    refuse_several_devices(cfg, kwargs, env_vars);
    refuse_nccl_on_one_gpu(s.common.transport, env_vars);
  }
  s.common.spawn.arguments = server_arguments(cfg, kwargs, cuda);
  s.common.spawn.environment = server_environment(env_vars, call.device());
  return s;
}

}  // namespace hexad::sglang

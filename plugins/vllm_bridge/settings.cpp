#include "plugins/vllm_bridge/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/file/input_file.hpp"
#include "plugins/vllm_bridge/process/arguments.hpp"
#include "plugins/vllm_bridge/refit/nccl/library.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kLastPort = 65535, kMostServers = 1024;

int64_t between(const sdk::Config& config, const char* key, int64_t otherwise, int64_t minimum, int64_t maximum) {
  const auto value = config.get<int64_t>(key, otherwise);
  if (value < minimum || value > maximum) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %lld, wanted %lld to %lld", key, static_cast<long long>(value),
              static_cast<long long>(minimum), static_cast<long long>(maximum));
  }
  return value;
}

int64_t at_least(const sdk::Config& config, const char* key, int64_t otherwise, int64_t minimum) {
  const auto value = config.get<int64_t>(key, otherwise);
  if (value < minimum) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %lld, wanted at least %lld", key, static_cast<long long>(value),
              static_cast<long long>(minimum));
  }
  return value;
}

Seconds seconds(const sdk::Config& config, const char* key, Seconds otherwise) {
  const auto value = config.get<double>(key, otherwise.count());
  if (!(value > 0 && value <= 1e7))  // nanoseconds that a clock can hold
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %g, wanted more than 0 seconds and at most 1e7", key, value);
  return Seconds(value);
}

Json subtree(const sdk::Config& config, const char* path) {
  const std::optional<std::string> text = config.json(path);
  return text ? Json::parse(*text) : Json();
}

std::vector<std::string> texts(const sdk::Config& config, const char* path) {
  std::vector<std::string> result;
  const Json list = subtree(config, path);
  if (list.is_null()) return result;
  const bool good =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& v) { return v.is_string(); });
  if (!good) sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %s, wanted a list of texts", path, list.dump().c_str());
  for (const Json& value : list) result.push_back(value.get<std::string>());
  return result;
}

// This rank's part of the servers to attach to.
std::vector<std::string> read_urls(const sdk::Config& config) {
  std::vector<std::string> all = texts(config, "vllm_cfg.server_urls"), own;
  const auto rank = static_cast<size_t>(config.get<int64_t>("replica_index", 0));
  const auto ranks = static_cast<size_t>(config.get<int64_t>("replica_count", 1));
  if (!all.empty() && all.size() < ranks) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "vllm_cfg.server_urls: got %zu servers for %zu ranks, wanted at least one a rank: start more servers, or "
              "leave the key out and each rank starts its own",
              all.size(), ranks);
  }
  for (size_t i = rank; i < all.size(); i += ranks) {
    std::string url = all[i];
    while (url.ends_with('/')) url.pop_back();
    if (!url.starts_with("http://") && !url.starts_with("https://")) {
      sdk::fail(HEXAD_INVALID_ARGUMENT, "vllm_cfg.server_urls: got '%s', wanted a URL such as http://127.0.0.1:8000",
                url.c_str());
    }
    own.push_back(std::move(url));
  }
  return own;
}

std::string read_api_key(const sdk::Config& config) {
  const std::string variable = config.get("vllm_cfg.api_key_env_var", "");
  if (variable.empty()) return "";
  const char* value = std::getenv(variable.c_str());
  if (!value || !*value) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "vllm_cfg.api_key_env_var: the environment has no variable %s", variable.c_str());
  }
  return value;
}

void add_ids(const Json& value, std::set<int32_t>& ids) {
  if (value.is_number_integer()) ids.insert(value.get<int32_t>());
  for (const Json& id : value.is_array() ? value : Json::array()) add_ids(id, ids);
}

Json read_json(const fs::path& path) {
  if (!fs::exists(path)) return Json();
  InputFile file(path, [](const std::string& name, const char* what, int reason) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "model_name: %s %s: %s", name.c_str(), what, std::strerror(reason));
  });
  return Json::parse(file, nullptr, /*allow_exceptions=*/false);
}

void read_model(Settings& s) {
  const fs::path dir(s.model_name);
  const Json config = read_json(dir / "config.json");
  if (!config.is_object()) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "model_name: %s has no readable config.json; wanted a Hugging Face directory",
              s.model_name.c_str());
  }
  s.model_name = fs::absolute(dir).lexically_normal().string();
  const Json generation = read_json(dir / "generation_config.json");
  for (const Json& source : {config, generation}) {
    if (source.is_object() && source.contains("eos_token_id")) add_ids(source.at("eos_token_id"), s.eos_token_ids);
  }
  if (s.max_length == 0) s.max_length = config.value("max_position_embeddings", int64_t{0});
}

// What this bridge cannot do is refused, not passed over.
void refuse_what_is_missing(const sdk::Config& config) {
  if (config.get("return_routed_experts", false)) {
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "the backend wants routed_experts, which this bridge does not fetch yet. Set policy.router_replay.source "
              "to logprobs, or policy.generation.backend to native");
  }
}

std::string read_transport(const sdk::Call& call, const sdk::Config& config) {
  const std::string transport = config.get("refit_transport", "");
  if (!std::set<std::string>{"", "disk", "ipc", "nccl"}.contains(transport)) {
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "refit_transport: got '%s'. Weights reach vLLM by disk, ipc or nccl; without the key by what its servers "
              "offer",
              transport.c_str());
  }
  if ((transport == "ipc" || transport == "nccl") && call.device().device_type != kDLCUDA) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "refit_transport: got '%s', which goes from GPU to GPU, and this rank has none",
              transport.c_str());
  }
  return transport;
}

// What of vllm_cfg a server is started with.
Json server_cfg(const sdk::Config& config, const Settings& s) {
  Json cfg = {{"precision", config.get("vllm_cfg.precision", config.get("precision", "auto"))},
              {"logprobs_mode", s.logprobs_mode},
              {"gpu_memory_utilization", config.get("vllm_cfg.gpu_memory_utilization", 0.6)},
              {"expert_parallel_size", config.get<int64_t>("vllm_cfg.expert_parallel_size", 1)},
              {"enable_expert_parallel", config.get("vllm_cfg.enable_expert_parallel", false)},
              {"enforce_eager", config.get("vllm_cfg.enforce_eager", false)},
              {"load_format", config.get("vllm_cfg.load_format", "auto")},
              {"kv_cache_dtype", config.get("vllm_cfg.kv_cache_dtype", "auto")}};
  const auto length = config.find<int64_t>("vllm_cfg.max_model_len");
  if (length || s.max_length > 0) cfg["max_model_len"] = length.value_or(s.max_length);
  // A server has one rank of each kind without being told.
  for (const char* size : {"tensor_parallel_size", "pipeline_parallel_size"}) {
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
void offer_weight_transfer(const std::string& transport, SpawnSettings& spawn) {
  if (transport != "ipc" && transport != "nccl") return;
  const std::string option = "--weight-transfer-config";
  if (std::ranges::find(spawn.arguments, option) == spawn.arguments.end()) {
    spawn.arguments.push_back(option);
    spawn.arguments.push_back(Json{{"backend", transport}}.dump());
  }
  if (transport == "ipc") spawn.environment.emplace("VLLM_ALLOW_INSECURE_SERIALIZATION", "1");
  if (const std::string path = nccl_path(); transport == "nccl" && !path.empty())
    spawn.environment.emplace("VLLM_NCCL_SO_PATH", path);
}

}  // namespace

Settings read_settings(const sdk::Call& call, const sdk::Config& config) {
  Settings s;
  refuse_what_is_missing(config);
  s.model_name = config.get("model_name", "");
  if (s.model_name.empty()) sdk::fail(HEXAD_INVALID_ARGUMENT, "model_name is missing: wanted a Hugging Face directory");
  s.max_length = at_least(config, "max_total_sequence_length", 0, 0);
  read_model(s);
  s.urls = read_urls(config);
  s.api_key = read_api_key(config);
  s.max_running = at_least(config, "vllm_cfg.max_running_requests", s.max_running, 1);
  s.attempts = at_least(config, "vllm_cfg.max_attempts", s.attempts, 1);
  s.seed_requests = config.get("vllm_cfg.seed_requests", s.seed_requests);
  s.logprobs_mode = config.get("vllm_cfg.logprobs_mode", "processed_logprobs");
  s.transport = read_transport(call, config);
  s.refit_address = config.get("vllm_cfg.refit_address", "127.0.0.1");
  s.refit_dir = config.get("vllm_cfg.refit_dir", "");
  Deadlines& d = s.deadlines;
  d.startup = seconds(config, "vllm_cfg.startup_timeout_s", d.startup);
  d.control = seconds(config, "vllm_cfg.control_timeout_s", d.control);
  d.probe = seconds(config, "vllm_cfg.health_timeout_s", d.probe);
  d.stall = seconds(config, "vllm_cfg.stall_timeout_s", d.stall);
  d.lost = seconds(config, "vllm_cfg.lost_timeout_s", d.lost);
  s.spawn.servers = between(config, "vllm_cfg.num_servers", 1, 1, kMostServers);
  s.spawn.command = texts(config, "vllm_cfg.server_command");
  if (s.spawn.command.empty()) s.spawn.command = {"python3", "-m", "vllm.entrypoints.openai.api_server"};
  s.spawn.port_low = between(config, "port_range_low", s.spawn.port_low, 1, kLastPort);
  s.spawn.port_high = between(config, "port_range_high", s.spawn.port_high, s.spawn.port_low, kLastPort);
  s.spawn.log_dir = config.get("vllm_cfg.server_log_dir", "");
  const bool cuda = call.device().device_type == kDLCUDA;
  const Json env_vars = subtree(config, "vllm_cfg.env_vars");
  const Json cfg = server_cfg(config, s), kwargs = subtree(config, "vllm_kwargs");
  if (cuda && s.urls.empty()) refuse_several_devices(cfg, kwargs, env_vars);
  s.spawn.arguments = server_arguments(cfg, kwargs, cuda);
  s.spawn.environment = server_environment(env_vars, call.device());
  if (cuda) offer_weight_transfer(s.transport, s.spawn);
  return s;
}

}  // namespace hexad::vllm

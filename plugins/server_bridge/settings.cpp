#include "plugins/server_bridge/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "lib/base/file/input_file.hpp"

namespace hexad::bridge {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kLastPort = 65535, kMostServers = 1024;

int64_t between(const sdk::Config& config, const std::string& key, int64_t otherwise, int64_t minimum,
                int64_t maximum) {
  const auto value = config.get<int64_t>(key.c_str(), otherwise);
  if (value < minimum || value > maximum) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %lld, wanted %lld to %lld", key.c_str(), static_cast<long long>(value),
              static_cast<long long>(minimum), static_cast<long long>(maximum));
  }
  return value;
}

int64_t at_least(const sdk::Config& config, const std::string& key, int64_t otherwise, int64_t minimum) {
  const auto value = config.get<int64_t>(key.c_str(), otherwise);
  if (value < minimum) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %lld, wanted at least %lld", key.c_str(), static_cast<long long>(value),
              static_cast<long long>(minimum));
  }
  return value;
}

Seconds seconds(const sdk::Config& config, const std::string& key, Seconds otherwise) {
  const auto value = config.get<double>(key.c_str(), otherwise.count());
  if (!(value > 0 && value <= 1e7))  // nanoseconds that a clock can hold
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %g, wanted more than 0 seconds and at most 1e7", key.c_str(), value);
  return Seconds(value);
}

std::vector<std::string> texts(const sdk::Config& config, const std::string& path) {
  std::vector<std::string> result;
  const Json list = subtree(config, path);
  if (list.is_null()) return result;
  const bool good =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& v) { return v.is_string(); });
  if (!good) sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %s, wanted a list of texts", path.c_str(), list.dump().c_str());
  for (const Json& value : list) result.push_back(value.get<std::string>());
  return result;
}

// This rank's part of the servers to attach to.
std::vector<std::string> read_urls(const sdk::Config& config, const std::string& key) {
  std::vector<std::string> all = texts(config, key), own;
  const auto rank = static_cast<size_t>(config.get<int64_t>("replica_index", 0));
  const auto ranks = static_cast<size_t>(config.get<int64_t>("replica_count", 1));
  if (!all.empty() && all.size() < ranks) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "%s: got %zu servers for %zu ranks, wanted at least one a rank: start more servers, or "
              "leave the key out and each rank starts its own",
              key.c_str(), all.size(), ranks);
  }
  for (size_t i = rank; i < all.size(); i += ranks) {
    std::string url = all[i];
    while (url.ends_with('/')) url.pop_back();
    if (!url.starts_with("http://") && !url.starts_with("https://")) {
      sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got '%s', wanted a URL such as http://127.0.0.1:8000", key.c_str(),
                url.c_str());
    }
    own.push_back(std::move(url));
  }
  return own;
}

std::string read_api_key(const sdk::Config& config, const std::string& key) {
  const std::string variable = config.get(key.c_str(), "");
  if (variable.empty()) return "";
  const char* value = std::getenv(variable.c_str());
  if (!value || !*value) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: the environment has no variable %s", key.c_str(), variable.c_str());
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
  const Json& text = config.contains("text_config") ? config.at("text_config") : config;
  if (text.is_object() && text.contains("vocab_size") && text.at("vocab_size").is_number_integer())
    s.vocabulary = text.at("vocab_size").get<int64_t>();
  if (config.contains("model_type") && config.at("model_type").is_string())
    s.model_type = config.at("model_type").get<std::string>();
  if (s.max_length == 0) s.max_length = config.value("max_position_embeddings", int64_t{0});
}

}  // namespace

Json subtree(const sdk::Config& config, const std::string& path) {
  const std::optional<std::string> text = config.json(path.c_str());
  return text ? Json::parse(*text) : Json();
}

Settings read_requests(const sdk::Config& config, const std::string& section, Deadlines defaults) {
  Settings s;
  s.model_name = config.get("model_name", "");
  if (s.model_name.empty()) sdk::fail(HEXAD_INVALID_ARGUMENT, "model_name is missing: wanted a Hugging Face directory");
  s.max_length = at_least(config, "max_total_sequence_length", 0, 0);
  read_model(s);
  s.urls = read_urls(config, section + ".server_urls");
  s.api_key = read_api_key(config, section + ".api_key_env_var");
  s.max_running = at_least(config, section + ".max_running_requests", s.max_running, 1);
  s.attempts = at_least(config, section + ".max_attempts", s.attempts, 1);
  s.seed_requests = config.get((section + ".seed_requests").c_str(), s.seed_requests);
  s.deadlines = defaults;
  Deadlines& d = s.deadlines;
  d.startup = seconds(config, section + ".startup_timeout_s", d.startup);
  d.probe = seconds(config, section + ".health_timeout_s", d.probe);
  d.stall = seconds(config, section + ".stall_timeout_s", d.stall);
  d.lost = seconds(config, section + ".lost_timeout_s", d.lost);
  return s;
}

SpawnSettings read_spawn(const sdk::Config& config, const std::string& section, std::vector<std::string> command) {
  SpawnSettings spawn;
  spawn.servers = between(config, section + ".num_servers", 1, 1, kMostServers);
  spawn.command = texts(config, section + ".server_command");
  if (spawn.command.empty()) spawn.command = std::move(command);
  spawn.port_low = between(config, "port_range_low", spawn.port_low, 1, kLastPort);
  spawn.port_high = between(config, "port_range_high", spawn.port_high, spawn.port_low, kLastPort);
  spawn.log_dir = config.get((section + ".server_log_dir").c_str(), "");
  return spawn;
}

Settings read_common(const sdk::Config& config, const std::string& section, std::vector<std::string> command) {
  Settings s = read_requests(config, section);
  s.refit_dir = config.get((section + ".refit_dir").c_str(), "");
  s.deadlines.control = seconds(config, section + ".control_timeout_s", s.deadlines.control);
  s.spawn = read_spawn(config, section, std::move(command));
  return s;
}

std::string read_transport(const sdk::Config& config, const std::set<std::string>& offered, const char* ways) {
  std::string transport = config.get("refit_transport", "");
  if (!transport.empty() && !offered.contains(transport))
    sdk::fail(HEXAD_UNIMPLEMENTED, "refit_transport: got '%s'. %s", transport.c_str(), ways);
  return transport;
}

void check_has_gpu(const sdk::Call& call, const std::string& transport) {
  if ((transport != "ipc" && transport != "nccl") || call.device().device_type == kDLCUDA) return;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "refit_transport: got '%s', which goes from GPU to GPU, and this rank has none",
            transport.c_str());
}

void refuse_routed_experts(const sdk::Config& config) {
  if (config.get("return_routed_experts", false)) {
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "the backend wants routed_experts, which this bridge does not fetch yet. Set policy.router_replay.source "
              "to logprobs, or policy.generation.backend to native");
  }
}

std::string outer_device(DLDevice device) {
  std::vector<std::string> visible;
  if (const char* list = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream stream(list);
    for (std::string entry; std::getline(stream, entry, ',');) visible.push_back(entry);
  }
  const auto id = static_cast<size_t>(device.device_id);
  return id < visible.size() ? visible[id] : std::to_string(id);
}

}  // namespace hexad::bridge

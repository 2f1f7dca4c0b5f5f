// What every bridge reads of policy.generation. docs/config.md says what each key means.
#pragma once
#include <hexad/services.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plugins/server_bridge/routes.hpp"

namespace hexad::bridge {

using Seconds = std::chrono::duration<double>;

struct Deadlines {
  Seconds startup{900};  // of a server that is starting
  Seconds control{300};  // of pause, resume, loading weights, sleep
  Seconds probe{5};      // of an answer about itself
  Seconds stall{120};    // without a token from a server that has requests
  Seconds lost{900};     // without any server
};

// How this rank's own servers are started.
struct SpawnSettings {
  int64_t servers = 1;
  std::vector<std::string> command;    // program and first arguments; the bridge's follow
  std::vector<std::string> arguments;  // of the engine
  std::map<std::string, std::string> environment;
  int64_t port_low = 3000, port_high = 4999;
  std::string log_dir;  // "": beside the weights
};

struct Settings {
  std::string model_name, model_type;
  int64_t max_length = 0;         // prompt and response, tokens; 0: the model's
  int64_t vocabulary = 0;         // token ids are below; 0: not known, or not looked at
  std::vector<std::string> urls;  // to attach to; empty: spawn
  std::string api_key;            // of attached servers; never logged
  bool takes_weights = true;      // false: the servers keep the model that they are started with
  SpawnSettings spawn;
  int64_t max_running = 256;  // requests at a server at once
  int64_t attempts = 5;       // of one request that gets nowhere
  bool seed_requests = true;
  std::string transport;             // of weights: disk or one of the engine's; "": what the servers offer
  std::string refit_dir;             // where weights for the servers are written; "": a folder of its own
  std::set<int32_t> eos_token_ids;   // of the model
  std::optional<RouteShape> routes;  // completions carry routed_experts
  Deadlines deadlines;
};

// All but spawn.arguments, spawn.environment and transport. `section`: the engine's of policy.generation. `command`:
// what starts a server where no key says it. Throws sdk::Error that names the key.
Settings read_common(const sdk::Config& config, const std::string& section, std::vector<std::string> command);

// The two parts of it: what requests need, with other defaults of their deadlines; and how servers are started.
Settings read_requests(const sdk::Config& config, const std::string& section, Deadlines defaults = {});
SpawnSettings read_spawn(const sdk::Config& config, const std::string& section, std::vector<std::string> command);

// A tree of the section, null where it is not there.
nlohmann::ordered_json subtree(const sdk::Config& config, const std::string& path);

// The refit_transport, one of `offered` or "". Throws sdk::Error with `ways`.
std::string read_transport(const sdk::Config& config, const std::set<std::string>& offered, const char* ways);

// Throws sdk::Error for a transport from GPU to GPU (ipc, nccl) of a rank that has none.
void check_has_gpu(const sdk::Call& call, const std::string& transport);

// What these bridges cannot do is refused, not passed over.
void refuse_routed_experts(const sdk::Config& config);

// A rank's own CUDA device, by the number that it has outside of this process.
std::string outer_device(DLDevice device);

}  // namespace hexad::bridge

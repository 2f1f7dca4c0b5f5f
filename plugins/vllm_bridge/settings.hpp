// policy.generation as this generator reads it. docs/config.md says what each key means.
#pragma once
#include <hexad/services.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hexad::vllm {

using Seconds = std::chrono::duration<double>;

struct Deadlines {
  Seconds startup{900};  // of a server that is starting
  Seconds control{300};  // of pause, resume, reload_weights, sleep
  Seconds probe{5};      // of /health, /version
  Seconds stall{120};    // without a token from a server that has requests
  Seconds lost{900};     // without any server
};

// How this rank's own servers are started.
struct SpawnSettings {
  int64_t servers = 1;
  std::vector<std::string> command;    // program and first arguments; the bridge's follow
  std::vector<std::string> arguments;  // of vLLM, from vllm_cfg and vllm_kwargs
  std::map<std::string, std::string> environment;
  int64_t port_low = 3000, port_high = 4999;
  std::string log_dir;  // "": beside the weights
};

struct Settings {
  std::string model_name;
  int64_t max_length = 0;         // prompt and response, tokens; 0: the model's
  std::vector<std::string> urls;  // to attach to; empty: spawn
  std::string api_key;            // of attached servers; never logged
  SpawnSettings spawn;
  int64_t max_running = 256;  // requests at a server at once
  int64_t attempts = 5;       // of one request that gets nowhere
  bool seed_requests = true;
  std::string logprobs_mode;
  std::string transport;            // of weights: disk, ipc, nccl; "": what the servers offer
  std::string refit_address;        // where servers meet this process for NCCL: an IPv4 address of this host
  std::string refit_dir;            // where weights for the servers are written; "": a folder of its own
  std::set<int32_t> eos_token_ids;  // of the model
  Deadlines deadlines;
};

Settings read_settings(const sdk::Call& call, const sdk::Config& config);

}  // namespace hexad::vllm

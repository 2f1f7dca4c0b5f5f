// An instance of a plugin of any kind, and a small piece of work that each can do.
#pragma once
#include <string>

#include "sdk/verify/engine.hpp"

namespace hexad::verify {

// The vtable's create. *out is what the plugin wrote there, also when it failed.
hexad_code create(const Subject& subject, const hexad_host* host, Call& call, const Config& config, void** out);
void destroy(const Subject& subject, void* instance);

// Creates under `host` and the unchanged configuration; null with the reason in `error` if that fails.
class Instance {
 public:
  Instance(const Subject& subject, const hexad_host* host);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  explicit operator bool() const { return self_ != nullptr; }
  void* self() const { return self_; }
  const std::string& error() const { return error_; }

 private:
  const Subject& subject_;
  std::unique_ptr<Config> config_;
  void* self_ = nullptr;
  std::string error_;
};

// For the levels that do not care what is computed.
struct Trial {
  hexad_code code = HEXAD_OK;
  std::string text;    // of the error
  std::string bits;    // of the outputs: equal bits give equal text
  std::string damage;  // what was written that may not be; empty if nothing
};

// A loss computes two sequences, a backend their log-probs, a generator draws greedily, an environment
// scores. `grown`: with the structs of a later minor (losses, environments).
Trial run_trial(const Subject& subject, void* instance, const CallOptions& options = {}, bool grown = false);

}  // namespace hexad::verify

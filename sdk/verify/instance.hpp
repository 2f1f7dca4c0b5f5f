// An instance of a plugin of any kind.
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

}  // namespace hexad::verify

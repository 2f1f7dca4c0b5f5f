// What the conformance kit needs of an engine: its host table, calls and configurations. The kit itself knows abi.h
// alone, so that it tests the contract and not one engine.
#pragma once
#include <hexad/abi.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace hexad::verify {

// One call into the plugin, with its error slot.
class Call {
 public:
  virtual ~Call() = default;
  virtual hexad_call* handle() = 0;
  virtual hexad_code code() const = 0;   // HEXAD_OK while nobody has set an error
  virtual std::string text() const = 0;  // of the first error
};

class Config {
 public:
  virtual ~Config() = default;
  virtual const hexad_config* handle() const = 0;
};

struct CallOptions {
  const std::atomic<bool>* cancelled = nullptr;  // null: never
  uint64_t flags = 0;                            // HEXAD_CALL_*
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const hexad_host* host() const = 0;
  virtual std::unique_ptr<Call> call(const CallOptions& options = {}) = 0;
  // The section that names the plugin, with values (JSON texts) set at dotted paths of its plugin_config.
  virtual std::unique_ptr<Config> config(const std::map<std::string, std::string>& changes = {}) = 0;
};

class CudaDevice;

// The plugin under test.
struct Subject {
  hexad_plugin_query_fn query = nullptr;
  const hexad_plugin_desc* desc = nullptr;  // the one of the chain that the manifest names
  Engine* engine = nullptr;
  CudaDevice* cuda = nullptr;  // where the tensors of a loss lie; null: in host memory
  double patience_s = 60;      // for answers of a generator
};

// Null for a plugin of another kind, or of a minor that had no environments.
inline const hexad_environment_vtable* environment_of(const hexad_plugin_desc& desc) {
  return HEXAD_HAS(&desc, environment) ? desc.environment : nullptr;
}

// Whether equal inputs promise equal bits.
inline bool repeatable(const Subject& subject) {
  const auto* environment = environment_of(*subject.desc);
  const uint64_t caps = subject.desc->loss ? subject.desc->loss->caps : environment ? environment->caps : 0;
  return !(caps & HEXAD_CAP_NONDETERMINISTIC);
}

}  // namespace hexad::verify

// The bridge as the engine drives it: its plugin, loaded and called through the ABI.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "benchmarks/bridge_overhead/outcome.hpp"
#include "core/plugin/call.hpp"
#include "core/plugin/kind/generator_plugin.hpp"
#include "core/plugin/loader.hpp"

namespace hexad::bridge_overhead {

class BridgeArm {
 public:
  // Attached to one server, which may have `most` requests at once.
  BridgeArm(const std::filesystem::path& plugins, const std::string& url, int64_t most);
  ~BridgeArm();

  Outcome run(const Load& load);

 private:
  std::filesystem::path model_dir_;
  plugin::CallContext context_;
  std::unique_ptr<plugin::Registry> registry_;
  std::unique_ptr<plugin::GeneratorPlugin> generator_;
};

}  // namespace hexad::bridge_overhead

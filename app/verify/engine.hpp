// This engine as the conformance kit sees it: the host table of a process without a runtime, real calls and
// configurations.
#pragma once
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/manifest/manifest.hpp"
#include "sdk/verify/engine.hpp"

namespace hexad::plugin {

class VerifyEngine : public verify::Engine {
 public:
  // `section` names the plugin: "loss_fn", "policy", "policy.generation" or "env.<name>", with its plugin_config.
  VerifyEngine(std::string section_path, nlohmann::ordered_json section);

  const hexad_host* host() const override;
  std::unique_ptr<verify::Call> call(const verify::CallOptions& options) override;
  std::unique_ptr<verify::Config> config(const std::map<std::string, std::string>& changes) override;

 private:
  std::string section_path_;
  nlohmann::ordered_json section_;
};

// The section that a plugin of this kind is verified with: the tiny model beside the program, fp32, and
// `plugin_config`.
nlohmann::ordered_json verify_section(Kind kind, const nlohmann::ordered_json& plugin_config);
std::string verify_section_path(Kind kind);

// The folder beside the program with the kit's models: `model`, and `experts`, which has no weights.
std::filesystem::path verify_models();

}  // namespace hexad::plugin

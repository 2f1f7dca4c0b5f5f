// An environment plugin's instance.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plugin/kind/instance_base.hpp"

namespace hexad::plugin {

// What it says back to a sample, and keeps for its next turn.
struct EnvironmentReply {
  std::optional<std::string> content, state;
  std::string role = "user";
};

// Of n samples, in their order.
struct EnvironmentScores {
  std::vector<float> rewards;                  // [n], finite where valid
  std::vector<uint8_t> invalid;                // [n]
  std::vector<std::vector<float>> components;  // [component_names().size()][n]
  std::vector<EnvironmentReply> replies;       // [n]
  // [n], "" where the plugin gave none; empty: it gave none of any sample.
  std::vector<std::string> answers = {};
};

class EnvironmentPlugin : public Instance {
 public:
  // Creates the instance. `config` is the section env.<name>. Throws PluginError, or Error(config) for keys of
  // plugin_config that it did not read.
  EnvironmentPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config);
  ~EnvironmentPlugin();

  std::vector<std::string> component_names() const;

  // Thread class C: one call at a time. A reward or component that is not finite and a text that is no UTF-8 count as
  // a failed call: PluginError(INTERNAL) with the sample's number.
  EnvironmentScores score(const CallContext& context, std::span<const hexad_sample* const> samples);

 private:
  void check_numbers(const CallContext& context, const EnvironmentScores& scores) const;
  void check_texts(const CallContext& context, const EnvironmentScores& scores) const;

  const hexad_environment_vtable* vtable_;
  hexad_environment* self_ = nullptr;
};

}  // namespace hexad::plugin

#include "core/plugin/kind/environment_plugin.hpp"

#include <cmath>

namespace hexad::plugin {

namespace {

EnvironmentReply reply_of(const hexad_reply& reply) {
  EnvironmentReply copy;
  if (reply.content) copy.content.emplace(reply.content, reply.content_size);
  if (reply.role) copy.role = reply.role;
  if (reply.state) copy.state.emplace(reply.state, reply.state_size);
  return copy;
}

}  // namespace

EnvironmentPlugin::EnvironmentPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config)
    : Instance(plugin, Kind::environment, std::move(config)), vtable_(plugin.desc->environment) {
  create_instance(context, vtable_, self_);
  try {
    require_all_keys_read();
  } catch (...) {
    vtable_->destroy(self_);
    throw;
  }
}

EnvironmentPlugin::~EnvironmentPlugin() { vtable_->destroy(self_); }

std::vector<std::string> EnvironmentPlugin::component_names() const {
  return {vtable_->components, vtable_->components + vtable_->num_components};
}

EnvironmentScores EnvironmentPlugin::score(const CallContext& context, std::span<const hexad_sample* const> samples) {
  const size_t count = samples.size(), components = vtable_->num_components;
  EnvironmentScores scores{std::vector<float>(count), std::vector<uint8_t>(count), {}, {}};
  std::vector<float> parts(components * count);
  std::vector<hexad_reply> replies(count);
  hexad_scores out{};
  out.struct_size = HEXAD_STRUCT_SIZE(hexad_scores, replies);
  out.rewards = scores.rewards.data();
  out.invalid = scores.invalid.data();
  out.components = parts.data();
  out.replies = replies.data();
  invoke(context, "score", [&](hexad_call* call) {
    const hexad_code code = vtable_->score(self_, call, samples.data(), static_cast<int64_t>(count), &out);
    for (size_t i = 0; code == HEXAD_OK && i < count; ++i) {
      if (scores.invalid[i] || std::isfinite(scores.rewards[i])) continue;
      return Call::from(call).set_error(
          HEXAD_INTERNAL,
          fmt::format("the reward of sample {} of {} is {}; a sample that cannot be scored is marked invalid: the "
                      "plugin is faulty, tell its author",
                      i, count, scores.rewards[i]));
    }
    for (size_t i = 0; code == HEXAD_OK && i < count; ++i) scores.replies.push_back(reply_of(replies[i]));
    return code;
  });
  for (size_t c = 0; c < components; ++c)
    scores.components.emplace_back(parts.begin() + c * count, parts.begin() + (c + 1) * count);
  return scores;
}

}  // namespace hexad::plugin

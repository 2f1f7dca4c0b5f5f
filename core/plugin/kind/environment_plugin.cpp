#include "core/plugin/kind/environment_plugin.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/utf8.hpp"

namespace hexad::plugin {

namespace {

EnvironmentReply reply_of(const hexad_reply& reply) {
  EnvironmentReply copy;
  if (reply.content) copy.content.emplace(reply.content, reply.content_size);
  if (reply.role) copy.role = reply.role;
  if (reply.state) copy.state.emplace(reply.state, reply.state_size);
  return copy;
}

constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // of a text

bool is_endless(const hexad_reply& reply, const hexad_answer& answer) {
  return (reply.content && reply.content_size > kMostBytes) || (reply.state && reply.state_size > kMostBytes) ||
         (answer.text && answer.size > kMostBytes);
}

std::vector<std::string> texts_of(const std::vector<hexad_answer>& answers) {
  if (std::ranges::all_of(answers, [](const hexad_answer& answer) { return !answer.text; })) return {};
  std::vector<std::string> texts(answers.size());
  for (size_t i = 0; i < answers.size(); ++i)
    if (answers[i].text) texts[i].assign(answers[i].text, answers[i].size);
  return texts;
}

}  // namespace

EnvironmentPlugin::EnvironmentPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config)
    : Instance(plugin, Kind::environment, std::move(config)), vtable_(plugin.desc->environment) {
  create_instance(context, vtable_, self_);
  try {
    require_all_keys_read();
  } catch (...) {
    clean_up("destroy", [&] { vtable_->destroy(self_); });
    throw;
  }
}

EnvironmentPlugin::~EnvironmentPlugin() {
  clean_up("destroy", [&] { vtable_->destroy(self_); });
}

std::vector<std::string> EnvironmentPlugin::component_names() const {
  return {vtable_->components, vtable_->components + vtable_->num_components};
}

EnvironmentScores EnvironmentPlugin::score(const CallContext& context, std::span<const hexad_sample* const> samples) {
  const size_t count = samples.size(), components = vtable_->num_components;
  EnvironmentScores scores{std::vector<float>(count), std::vector<uint8_t>(count), {}, {}};
  std::vector<float> parts(components * count);
  std::vector<hexad_reply> replies(count);
  std::vector<hexad_answer> answers(count);
  hexad_scores out{};
  out.struct_size = HEXAD_STRUCT_SIZE(hexad_scores, answers);
  out.rewards = scores.rewards.data();
  out.invalid = scores.invalid.data();
  out.components = parts.data();
  out.replies = replies.data();
  out.answers = answers.data();
  size_t fine = 0;
  invoke(context, "score", [&](hexad_call* call) {
    const hexad_code code = vtable_->score(self_, call, samples.data(), static_cast<int64_t>(count), &out);
    while (fine < count && !is_endless(replies[fine], answers[fine])) ++fine;
    if (code != HEXAD_OK || fine < count) return code;
    for (const hexad_reply& reply : replies) scores.replies.push_back(reply_of(reply));
    scores.answers = texts_of(answers);
    return code;
  });
  if (fine < count)
    refuse(context, "score", "R6", fmt::format("a text of sample {} has over {} bytes", fine, kMostBytes));
  for (size_t c = 0; c < components; ++c)
    scores.components.emplace_back(parts.begin() + c * count, parts.begin() + (c + 1) * count);
  check_numbers(context, scores);
  check_texts(context, scores);
  return scores;
}

void EnvironmentPlugin::check_numbers(const CallContext& context, const EnvironmentScores& scores) const {
  const auto wrong = [&](size_t i, const std::string& what, float value) {
    refuse(context, "score", "R3",
           fmt::format("{} of sample {} of {} is {}; a sample that cannot be scored is marked invalid", what, i,
                       scores.rewards.size(), value));
  };
  for (size_t i = 0; i < scores.rewards.size(); ++i) {
    if (scores.invalid[i]) continue;
    if (!std::isfinite(scores.rewards[i])) wrong(i, "the reward", scores.rewards[i]);
    for (size_t c = 0; c < scores.components.size(); ++c) {
      const float part = scores.components[c][i];
      if (!std::isfinite(part)) wrong(i, fmt::format("component '{}'", vtable_->components[c]), part);
    }
  }
}

void EnvironmentPlugin::check_texts(const CallContext& context, const EnvironmentScores& scores) const {
  const auto check = [&](size_t i, const char* what, const std::string& text) {
    if (utf8_prefix(text) == text.size()) return;
    refuse(context, "score", "R6",
           fmt::format("the {} of sample {} is no UTF-8 from byte {} on", what, i, utf8_prefix(text)));
  };
  for (size_t i = 0; i < scores.replies.size(); ++i) {
    const EnvironmentReply& reply = scores.replies[i];
    check(i, "reply", reply.content.value_or(""));
    check(i, "role", reply.role);
    check(i, "state", reply.state.value_or(""));
  }
  for (size_t i = 0; i < scores.answers.size(); ++i) check(i, "answer", scores.answers[i]);
}

}  // namespace hexad::plugin

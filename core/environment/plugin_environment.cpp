#include "core/environment/plugin_environment.hpp"

#include <mutex>

#include "core/config/declaration/section_defaults.hpp"
#include "core/environment/patience.hpp"
#include "core/plugin/kind/environment_plugin.hpp"
#include "core/plugin/metric_sum.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

// The texts of a sample with a NUL behind them, as the ABI promises.
struct Texts {
  std::string prompt, response, ground_truth, metadata, state;
};

hexad_sample to_abi(const Sample& sample, Texts& texts) {
  texts = {std::string(sample.prompt), std::string(sample.response), std::string(sample.ground_truth),
           sample.metadata && sample.metadata->is_object() ? data_text(*sample.metadata) : "{}",
           sample.state ? sample.state->get<std::string>() : ""};
  hexad_sample out{};
  out.struct_size = HEXAD_STRUCT_SIZE(hexad_sample, state_size);
  out.finish = sample.truncated ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_STOP;
  out.group = sample.group;
  out.prompt = texts.prompt.c_str();
  out.prompt_size = texts.prompt.size();
  out.response = texts.response.c_str();
  out.response_size = texts.response.size();
  out.ground_truth = texts.ground_truth.c_str();
  out.ground_truth_size = texts.ground_truth.size();
  out.metadata = texts.metadata.c_str();
  out.metadata_size = texts.metadata.size();
  out.tokens = sample.tokens.data();
  out.prompt_tokens = sample.prompt_tokens;
  out.response_tokens = sample.response_tokens;
  out.turn = sample.turn;
  out.state = texts.state.c_str();
  out.state_size = texts.state.size();
  return out;
}

class PluginEnvironment : public Environment {
 public:
  PluginEnvironment(std::string path, const plugin::LoadedPlugin& loaded, plugin::PluginConfig config,
                    const std::atomic<int>* interrupted)
      : path_(std::move(path)), interrupted_(interrupted), plugin_(loaded, plugin::CallContext{}, std::move(config)) {}

  Scores score(std::span<const Sample> samples, int64_t step) const override {
    std::vector<Texts> texts(samples.size());
    std::vector<hexad_sample> abi;
    std::vector<const hexad_sample*> pointers;
    for (size_t i = 0; i < samples.size(); ++i) abi.push_back(to_abi(samples[i], texts[i]));
    for (const hexad_sample& sample : abi) pointers.push_back(&sample);

    Scores scores;
    plugin::CallContext context;
    context.step = step;
    plugin::MetricSum metrics;
    std::mutex metrics_mutex;  // services may be called from any thread
    context.metric = [&](const plugin::Metric& metric) {
      const std::scoped_lock lock(metrics_mutex);
      metrics.add(metric.name, metric.value, metric.weight, static_cast<plugin::ReduceAs>(metric.reduce));
    };
    const std::scoped_lock one_call_at_a_time(mutex_);
    const Patience patience(interrupted_);
    context.cancelled = &patience.over();
    plugin::EnvironmentScores got = score_unless(patience, context, pointers);
    scores.metrics = metrics.values();
    scores.rewards = std::move(got.rewards);
    scores.invalid = std::move(got.invalid);
    scores.answers = std::move(got.answers);
    for (plugin::EnvironmentReply& reply : got.replies) {
      scores.replies.emplace_back();
      if (reply.content) scores.replies.back() = {std::move(*reply.content), std::move(reply.role)};
      scores.states.emplace_back();
      if (reply.state) scores.states.back() = std::move(*reply.state);
    }
    const std::vector<std::string> names = plugin_.component_names();
    for (size_t c = 0; c < names.size(); ++c) scores.components[names[c]] = std::move(got.components[c]);
    return scores;
  }

 private:
  plugin::EnvironmentScores score_unless(const Patience& patience, const plugin::CallContext& context,
                                         std::span<const hexad_sample* const> samples) const {
    try {
      return plugin_.score(context, samples);
    } catch (const Error&) {
      if (!patience.over()) throw;
      throw Interrupted(fmt::format("{}: interrupted, and the rewards of step {} have not come", path_, context.step));
    }
  }

  const std::string path_;
  const std::atomic<int>* interrupted_;
  mutable std::mutex mutex_;
  mutable plugin::EnvironmentPlugin plugin_;
};

}  // namespace

namespace {

// The section with each key of plugin_config that stands beside it, `x` for plugin_config.x, in its declared place.
Json moved_beside(Json section, const config::Declaration& declaration) {
  for (const config::Key& key : declaration.keys) {
    constexpr std::string_view kOwn = "plugin_config.";
    if (!key.path.starts_with(kOwn) || config::json_at(&section, key.path)) continue;
    const std::string beside = key.path.substr(kOwn.size());
    const Json* value = config::json_at(&section, beside);
    if (value && config::set_json_at(section, key.path, Json(*value)) && section.contains(beside))
      section.erase(beside);
  }
  return section;
}

}  // namespace

std::unique_ptr<Environment> make_plugin_environment(const std::string& name, const Json& section,
                                                     plugin::Registry& registry, plugin::Locate locate,
                                                     const std::atomic<int>* interrupted) {
  const std::string path = "env." + name;
  const Json& plugin = section.at("plugin");
  if (!plugin.is_string()) {
    fail(ErrorKind::config, "{}.plugin: want the name of an environment plugin or a path, got {}", path,
         json_text(plugin));
  }
  const plugin::LoadedPlugin& loaded = registry.load(plugin::Kind::environment, plugin.get<std::string>());
  const auto declaration = config::read_declaration(loaded.manifest, loaded.path);
  // What the configuration does for a section of `env`, one that is nested in another's `rewards` gets here.
  plugin::PluginConfig config(path, declaration ? moved_beside(section, *declaration) : section, std::move(locate));
  if (declaration) config.fill(*declaration);
  return std::make_unique<PluginEnvironment>(path, loaded, std::move(config), interrupted);
}

}  // namespace hexad::environment

#include "core/environment/plugin_environment.hpp"

#include <chrono>
#include <mutex>

#include <spdlog/spdlog.h>

#include "core/config/declaration/section_defaults.hpp"
#include "core/environment/watched_call.hpp"
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

// A call of score with all that it uses: it may go on when nobody waits for it any more.
struct ScoreCall {
  explicit ScoreCall(std::span<const Sample> given, int64_t step) : texts(given.size()), tokens(given.size()) {
    for (size_t i = 0; i < given.size(); ++i) {
      tokens[i].assign(given[i].tokens.begin(), given[i].tokens.end());
      samples.push_back(to_abi(given[i], texts[i]));
      samples.back().tokens = tokens[i].data();
    }
    for (const hexad_sample& sample : samples) pointers.push_back(&sample);
    context.step = step;
    context.metric = [this](const plugin::Metric& metric) {
      const std::scoped_lock lock(metrics_mutex);
      metrics.add(metric.name, metric.value, metric.weight, static_cast<plugin::ReduceAs>(metric.reduce));
    };
  }
  ScoreCall(const ScoreCall&) = delete;

  std::vector<Texts> texts;
  std::vector<std::vector<int64_t>> tokens;
  std::vector<hexad_sample> samples;
  std::vector<const hexad_sample*> pointers;
  plugin::CallContext context;
  std::mutex metrics_mutex;  // services may be called from any thread
  plugin::MetricSum metrics;
  plugin::EnvironmentScores scores;
};

class PluginEnvironment : public Environment {
 public:
  PluginEnvironment(std::string path, const plugin::LoadedPlugin& loaded, plugin::PluginConfig config, double limit_s,
                    const std::atomic<int>* interrupted)
      : path_(std::move(path)), loaded_(loaded), limit_s_(limit_s), interrupted_(interrupted) {
    const auto own = std::make_shared<plugin::PluginConfig>(std::move(config));
    const auto made = std::make_shared<std::shared_ptr<plugin::EnvironmentPlugin>>();
    watch("create", 0, "it has not been made", [own, made, &loaded](const plugin::CallContext& context) {
      *made = std::make_shared<plugin::EnvironmentPlugin>(loaded, context, std::move(*own));
    });
    plugin_ = std::move(*made);
  }

  ~PluginEnvironment() override {
    constexpr double kToDestroyS = 10;
    if (!is_lost_.empty()) return;  // the call that goes on has it
    const CallEnd end = watch_call([plugin = std::move(plugin_)](const auto&) mutable { plugin.reset(); }, kToDestroyS,
                                   /*interrupted=*/nullptr);
    if (!end.returned) spdlog::warn("{}: destroy has not returned within {} s", loaded_.label(), kToDestroyS);
  }

  Scores score(std::span<const Sample> samples, int64_t step) const override {
    const std::scoped_lock one_call_at_a_time(mutex_);
    const auto call = std::make_shared<ScoreCall>(samples, step);
    const std::string missing = fmt::format("the rewards of step {} have not come", step);
    watch("score", step, missing, [call, plugin = plugin_](const plugin::CallContext& context) {
      call->context.cancelled = context.cancelled, call->context.deadline_ns = context.deadline_ns;
      call->scores = plugin->score(call->context, call->pointers);
    });
    plugin::EnvironmentScores& got = call->scores;
    Scores scores;
    scores.metrics = call->metrics.values();
    scores.rewards = std::move(got.rewards);
    scores.invalid = std::move(got.invalid);
    for (uint8_t& each : scores.invalid) each = each != 0;  // a plugin knows no other kind (kNotApplicable)
    scores.answers = std::move(got.answers);
    for (plugin::EnvironmentReply& reply : got.replies) {
      scores.replies.emplace_back();
      if (reply.content) scores.replies.back() = {std::move(*reply.content), std::move(reply.role)};
      scores.states.emplace_back();
      if (reply.state) scores.states.back() = std::move(*reply.state);
    }
    const std::vector<std::string> names = plugin_->component_names();
    for (size_t c = 0; c < names.size(); ++c) scores.components[names[c]] = std::move(got.components[c]);
    return scores;
  }

 private:
  using Function = std::function<void(const plugin::CallContext& context)>;

  // Throws what the function throws, Interrupted that tells what is missing, or Error(plugin) where it does not return
  // in time.
  void watch(const char* function, int64_t step, const std::string& missing, Function run) const {
    using Clock = std::chrono::steady_clock;
    if (!is_lost_.empty()) throw Error(ErrorKind::plugin, is_lost_);
    plugin::CallContext context;
    context.step = step;
    const auto until = Clock::now().time_since_epoch() + std::chrono::duration<double>(std::min(limit_s_, 1e9));
    context.deadline_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(until).count();
    const auto call = [context, run = std::move(run)](const std::atomic<bool>& cancelled) mutable {
      context.cancelled = &cancelled;
      run(context);
    };
    const CallEnd end = watch_call(call, limit_s_, interrupted_);
    const std::string late = fmt::format(
        "{}: {} at step {}: has not returned within {:g} s (cluster.worker_timeout_s): it hangs, or it "
        "takes that long, and then the key has to be raised",
        loaded_.label(), function, step, limit_s_);
    if (!end.returned) is_lost_ = late;
    if (end.returned && !end.error) return;
    if (end.interrupted) throw Interrupted(fmt::format("{}: interrupted, and {}", path_, missing));
    if (!end.returned || (end.late && is_cancellation(end.error))) throw Error(ErrorKind::plugin, late);
    std::rethrow_exception(end.error);
  }

  static bool is_cancellation(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const plugin::PluginError& failed) {
      return failed.code() == HEXAD_CANCELLED || failed.code() == HEXAD_DEADLINE_EXCEEDED;
    } catch (...) {
      return false;
    }
  }

  const std::string path_;
  const plugin::LoadedPlugin& loaded_;
  const double limit_s_;
  const std::atomic<int>* interrupted_;
  mutable std::mutex mutex_;
  mutable std::string is_lost_;  // why the plugin is not called again: a call of it goes on
  std::shared_ptr<plugin::EnvironmentPlugin> plugin_;
};

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
  return std::make_unique<PluginEnvironment>(path, loaded, std::move(config), registry.options().call_limit_s,
                                             interrupted);
}

}  // namespace hexad::environment

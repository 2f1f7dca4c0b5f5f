#include <algorithm>
#include <filesystem>

#include "core/config/rules/rules.hpp"
#include "core/config/typed/run_config_read.hpp"
#include "lib/base/text.hpp"

namespace hexad::config {
namespace {

void check_checkpointing(RuleContext& c) {
  const std::string metric_key = "checkpointing.metric_name";
  const std::optional<std::string> metric = c.text(metric_key);
  if (metric && !metric->starts_with("val:") && !metric->starts_with("train:")) {
    c.notice(metric_key,
             fmt::format("a name without val: or train: is NeMo-RL 0.3's; it means {} here", ranked_metric(*metric)));
  }
  const std::string limit_key = "checkpointing.checkpoint_must_save_by";
  if (const std::optional<std::string> limit = c.text(limit_key); limit && !duration_seconds(*limit)) {
    c.error(limit_key, fmt::format("got '{}', wanted \"DD:HH:MM:SS\"", *limit));
  }
  if (c.integer("checkpointing.ft_keep_latest_k") && !c.integer("checkpointing.ft_save_period")) {
    c.error("checkpointing.ft_keep_latest_k", "needs checkpointing.ft_save_period");
  }
}

void check_cluster(RuleContext& c) {
  const std::optional<int64_t> low = c.integer("cluster.master_port_range_low");
  const std::optional<int64_t> high = c.integer("cluster.master_port_range_high");
  if (low && high && *low >= *high) {
    c.error("cluster.master_port_range_low",
            fmt::format("got {}, wanted less than cluster.master_port_range_high, which is {}", *low, *high));
  }
}

void check_pins(RuleContext& c) {
  const yaml::Node* pins = c.root().find("plugins.pin");
  if (!pins || !pins->is_map()) return;
  for (const auto& [name, hash] : pins->entries()) {
    const std::string text = hash.is_string() ? hash.as_string() : "";
    const bool hex = text.size() == 71 && text.find_first_not_of("0123456789abcdef", 7) == std::string::npos;
    if (!hex || !text.starts_with("sha256:")) {
      c.error("plugins.pin." + name, fmt::format("got {}, wanted sha256: and 64 hexadecimal digits", hash.describe()));
    }
  }
}

// The name of the plugin that a value stands for: a path's is that of its file, libNAME.so.
std::string plugin_name(const std::string& value) {
  if (!plugin::is_plugin_path(value)) return value;
  const std::string stem = std::filesystem::path(value).stem().string();
  return stem.starts_with("lib") ? stem.substr(3) : stem;
}

// The plugins of this run that may have a process of their own.
std::vector<std::string> confinable_plugins(const RuleContext& c) {
  std::vector<std::string> names;
  const auto add = [&](const std::optional<std::string>& value) {
    if (value) names.push_back(plugin_name(*value));
  };
  add(c.text("loss_fn.plugin"));
  if (c.algorithm() == Algorithm::grpo) add(c.facts().generator);
  const yaml::Node* environments = c.root().find("env");
  if (!environments || !environments->is_map()) return names;
  for (const auto& [name, environment] : environments->entries()) {
    const yaml::Node* plugin = environment.child("plugin");
    if (plugin && plugin->is_string()) add(plugin->as_string());
  }
  return names;
}

void check_own_process(RuleContext& c) {
  const std::string key = "plugins.own_process";
  const yaml::Node* list = c.root().find(key);
  if (!list || !list->is_list() || list->items().empty()) return;
  const std::vector<std::string> names = confinable_plugins(c);
  for (const yaml::Node& item : list->items()) {
    if (!item.is_string()) continue;
    const std::string name = plugin_name(item.as_string());
    if (name == plugin_name(c.backend())) {
      c.error(key, fmt::format("'{}' is this run's backend, which already has the worker process of its rank. Confine "
                               "its other plugins instead: {}",
                               name, joined(names)));
    } else if (std::ranges::find(names, name) == names.end()) {
      c.error(key, fmt::format("no plugin of this run is '{}'{} Its plugins that can have a process of their own: {}",
                               name, nearest(name, names) ? did_you_mean(name, names) : ".", joined(names)));
    }
  }
}

void check_trackers(RuleContext& c) {
  const yaml::Node* own = c.root().find("logger.trackers");
  const auto check = [&](const yaml::Node& tracker, const std::string& key) {
    for (const char* part : {"name", "command"}) {
      const yaml::Node* value = tracker.is_map() ? tracker.child(part) : &tracker;  // what is no map is refused already
      if (!value || (value->is_list() && value->items().empty()))
        c.error(key + "." + part, "is missing; wanted {name: mine, command: [python3, mine.py]}");
    }
  };
  if (own && own->is_map()) check(*own, "logger.trackers");
  for (size_t i = 0; own && own->is_list() && i < own->items().size(); ++i)
    check(own->items()[i], fmt::format("logger.trackers.{}", i));
}

}  // namespace

void check_run_rules(RuleContext& c) {
  if (!c.root().find("policy.model_name")) {
    c.error("policy.model_name", "is missing: give the Hugging Face directory of the model");
  }
  check_checkpointing(c);
  check_cluster(c);
  check_pins(c);
  check_own_process(c);
  check_trackers(c);
}

}  // namespace hexad::config

#include "core/config/declaration/selection.hpp"

#include <algorithm>
#include <filesystem>

#include "core/config/algorithm.hpp"
#include "core/config/declaration/check/library.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/interpolation.hpp"

namespace hexad::config {
namespace {

// The value at a path with its interpolations resolved; nothing where it is absent, null or cannot be resolved yet.
std::optional<yaml::Node> value_at(const yaml::Node& root, const std::string& path) {
  const yaml::Node* plain = root.find(path);
  if (plain && !plain->is_string()) return plain->is_null() ? std::nullopt : std::optional(*plain);
  if (plain && !yaml::has_interpolation(plain->as_string())) return *plain;
  try {
    yaml::Evaluator evaluator(root);
    const yaml::Evaluator::Chain chain = evaluator.select({&root}, path, yaml::Evaluator::BelowScalar::absent);
    if (chain.empty()) return std::nullopt;
    yaml::Node value = yaml::Evaluator(root).evaluate(chain);
    return value.is_null() ? std::nullopt : std::optional(std::move(value));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string text_at(const yaml::Node& root, const std::string& path, const std::string& otherwise) {
  const std::optional<yaml::Node> value = value_at(root, path);
  return value && value->is_string() ? value->as_string() : otherwise;
}

// How a backend's switch stands.
enum class Switch { on, off, by_default };

struct Switched {
  const Installed* backend;
  std::string key;
  Switch state;
};

Switched switch_of(const yaml::Node& root, const Installed& backend) {
  const SelectingKey& key = backend.outline().select.front();
  const std::string path = "policy." + key.path;
  const std::optional<yaml::Node> written = value_at(root, path);
  if (written) return {&backend, path, same_value(*written, key.wanted) ? Switch::on : Switch::off};
  return {&backend, path, key.by_default ? Switch::by_default : Switch::off};
}

class Selector {
 public:
  Selector(const yaml::Node& root, std::shared_ptr<Catalog> catalog, const Compat& compat) : root_(root) {
    out_.catalog = std::move(catalog);
    out_.sections = compat.sections;
    choose_generator(compat.engines);
  }

  Selection run() {
    choose_backend();
    choose_loss();
    choose_environments();
    find_dormant();
    return std::move(out_);
  }

 private:
  void error(const std::string& key, std::string message) {
    out_.problems.push_back({Problem::Severity::error, root_.nearest(key).location(), key, std::move(message)});
  }

  Chosen chosen(plugin::Kind kind, std::string block, const std::string& name) const {
    return {kind, std::move(block), name, name.empty() ? nullptr : out_.catalog->find(kind, name)};
  }

  void choose_backend() {
    if (const std::string name = text_at(root_, "policy.backend", ""); !name.empty()) {
      out_.backend = chosen(plugin::Kind::backend, "policy", name);
      return;
    }
    std::vector<Switched> switches, on, by_default;
    for (const Installed& each : out_.catalog->all()) {
      if (each.kind() != plugin::Kind::backend || each.outline().select.empty()) continue;
      switches.push_back(switch_of(root_, each));
      if (switches.back().state == Switch::on) on.push_back(switches.back());
      if (switches.back().state == Switch::by_default) by_default.push_back(switches.back());
    }
    refuse_missing_backend();
    const std::vector<Switched>& candidates = on.empty() ? by_default : on;
    for (size_t i = 1; i < candidates.size(); ++i) refuse_both(candidates[0], candidates[i]);
    if (candidates.empty()) return no_backend(switches);
    const Installed* backend = candidates.back().backend;
    out_.backend = {plugin::Kind::backend, "policy", backend->name(), backend};
  }

  void refuse_both(const Switched& one, const Switched& other) {
    error(other.key, one.key == other.key
                         ? fmt::format("it chooses the plugins of {} and {}: name one of the two in policy.backend",
                                       one.backend->manifest(), other.backend->manifest())
                         : fmt::format("{} is true as well; one of them trains: set the other to false", one.key));
  }

  // A section of another system's that is switched on, and no plugin that it belongs to.
  void refuse_missing_backend() {
    for (const OtherSection& section : out_.sections) {
      if (section.block != "policy" || out_.catalog->find(plugin::Kind::backend, std::string(section.plugin))) continue;
      const std::string key = fmt::format("policy.{}.{}", section.section, section.key);
      const std::optional<yaml::Node> value = value_at(root_, key);
      if (!value || !value->is_bool() || !value->as_bool()) continue;
      error(key,
            fmt::format("backend {} is not installed: `hexad plugin list` shows what is, and where it is looked for",
                        section.plugin));
      out_.backend = {plugin::Kind::backend, "policy", std::string(section.plugin), nullptr};
    }
  }

  void no_backend(const std::vector<Switched>& switches) {
    if (!out_.backend.name.empty()) return;  // said already
    std::vector<std::string> sections;
    for (const Switched& each : switches) sections.push_back(each.key.substr(0, each.key.rfind('.')));
    error(switches.empty() ? "policy.backend" : switches.front().key,
          fmt::format("no backend: {}name a plugin in policy.backend",
                      sections.empty() ? "" : fmt::format("enable {}, or ", joined(sections, " or "))));
  }

  // An engine of another system that nothing here serves is read as the default (config/synonyms.cpp tells so).
  void choose_generator(std::span<const std::string_view> engines) {
    const std::string name = text_at(root_, "policy.generation.backend", kDefaultGenerator);
    out_.is_engine_replaced =
        std::ranges::find(engines, name) != engines.end() && !out_.catalog->find(plugin::Kind::generator, name);
    out_.generator =
        chosen(plugin::Kind::generator, "policy.generation", out_.is_engine_replaced ? kDefaultGenerator : name);
  }

  void choose_loss() {
    const Algorithm algorithm = algorithm_of(root_);
    const std::string name = text_at(root_, "loss_fn.plugin", default_loss(algorithm));
    out_.loss = chosen(plugin::Kind::loss, algorithm == Algorithm::dpo ? "dpo" : "loss_fn", name);
  }

  void choose_environments() {
    const yaml::Node* environments = root_.child("env");
    if (!environments || !environments->is_map()) return;
    for (const auto& [name, section] : environments->entries()) {
      if (!section.is_map()) continue;
      const std::string block = "env." + name, plugin = text_at(root_, block + ".plugin", "");
      if (!plugin.empty())
        out_.environments.push_back(chosen(plugin::Kind::environment, block, plugin));
      else if (const Installed* named = named_environment(name, section))
        out_.environments.push_back({plugin::Kind::environment, block, named->name(), named});
    }
  }

  // The plugin whose name a section has, or its `type`, where no other key says what it is (core/environment/make.hpp).
  const Installed* named_environment(const std::string& name, const yaml::Node& section) const {
    for (const char* other : {"plugin", "command", "rewards"}) {
      const yaml::Node* value = section.child(other);
      if (value && !value->is_null()) return nullptr;
    }
    return out_.catalog->installed(plugin::Kind::environment, text_at(root_, "env." + name + ".type", name));
  }

  void find_dormant() {
    for (const Installed& each : out_.catalog->all()) {
      if (is_chosen(each)) continue;
      if (const std::string block = usual_block(each.kind(), each.name()); !block.empty()) look_for(each, block);
    }
  }

  bool is_chosen(const Installed& each) const {
    return std::ranges::any_of(out_.all(), [&](const Chosen* chosen) { return chosen->installed == &each; });
  }

  // Of its sections nothing stands there but the switch, as a boolean: the rest of its keys need not be read.
  static bool has_switch_alone(const yaml::Node& block, const Installed& installed) {
    const std::vector<SelectingKey>& select = installed.outline().select;
    return std::ranges::all_of(installed.outline().owned, [&](const std::string& name) {
      const yaml::Node* section = block.child(name);
      return !section || (section->is_map() && std::ranges::all_of(section->entries(), [&](const auto& entry) {
                            const std::string path = name + "." + entry.first;
                            return entry.second.is_bool() && std::ranges::any_of(select, [&](const SelectingKey& key) {
                                     return key.path == path;
                                   });
                          }));
    });
  }

  void look_for(const Installed& installed, const std::string& block) {
    const yaml::Node* map = root_.find(block);
    if (!map || !map->is_map()) return;
    Dormant found{nullptr, block, {}, {}};
    for (const std::string& name : installed.outline().owned) {
      if (!map->child(name)) continue;
      const Key* core = core_schema().find(block + "." + name);
      const bool engines = core && core->path.ends_with(name) && core->status == Status::effective;
      if (!engines) (out_.is_chosens(block, name) ? found.taken : found.present).push_back(name);
    }
    if (found.present.empty()) return;
    found.declaration = has_switch_alone(*map, installed) ? &installed.outline().selecting : installed.keys();
    if (found.declaration) out_.dormant.push_back(std::move(found));
  }

  const yaml::Node& root_;
  Selection out_;
};

}  // namespace

std::string usual_block(plugin::Kind kind, const std::string& plugin) {
  switch (kind) {
    case plugin::Kind::backend: return "policy";
    case plugin::Kind::generator: return "policy.generation";
    case plugin::Kind::loss: return plugin == default_loss(Algorithm::dpo) ? "dpo" : "loss_fn";
    case plugin::Kind::environment: break;
  }
  return "";
}

std::string choosing_key(plugin::Kind kind, const std::string& block) {
  switch (kind) {
    case plugin::Kind::backend: return "policy.backend";
    case plugin::Kind::generator: return "policy.generation.backend";
    case plugin::Kind::loss: return "loss_fn.plugin";
    case plugin::Kind::environment: break;
  }
  return block + ".plugin";
}

std::string Chosen::plugin() const {
  if (installed) return installed->name();
  if (!plugin::is_plugin_path(name)) return name;
  const std::string stem = std::filesystem::path(name).stem().string();
  return stem.starts_with("lib") ? stem.substr(3) : stem;
}

std::vector<const Chosen*> Selection::all() const {
  std::vector<const Chosen*> result;
  for (const Chosen* each : {&backend, &generator, &loss}) {
    if (!each->name.empty()) result.push_back(each);
  }
  for (const Chosen& each : environments) result.push_back(&each);
  return result;
}

bool Selection::is_chosens(const std::string& block, const std::string& name) const {
  return std::ranges::any_of(all(), [&](const Chosen* chosen) {
    if (chosen->block != block || !chosen->installed) return false;
    const std::vector<std::string>& owned = chosen->installed->outline().owned;
    return std::ranges::find(owned, name) != owned.end();
  });
}

Selection select_plugins(const yaml::Node& root, std::shared_ptr<Catalog> catalog, const Compat& compat) {
  return Selector(root, std::move(catalog), compat).run();
}

void open_check_libraries(const yaml::Node& root, Selection& selection) {
  const std::optional<yaml::Node> allowed = value_at(root, "plugins.allow_insecure_dirs");
  const bool allow_insecure = allowed && allowed->is_bool() && allowed->as_bool();
  const auto open = [&](Chosen& chosen) {
    if (chosen.installed) chosen.library = CheckLibrary::of(*chosen.installed, allow_insecure);
  };
  for (Chosen* each : {&selection.backend, &selection.generator, &selection.loss}) open(*each);
  for (Chosen& each : selection.environments) open(each);
}

}  // namespace hexad::config

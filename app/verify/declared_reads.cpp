#include "app/verify/declared_reads.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/config/declaration/section_defaults.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOwnMap = "plugin_config.";
constexpr const char* kFactsOfTheEngine[] = {"learning_rate", "max_grad_norm", "schedule"};

// True if `path` is `above` or lies below it.
bool is_at_or_below(std::string_view path, std::string_view above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '.');
}

// The path by which a plugin reads a declared key, list indexes left out.
std::string read_path(std::string_view path) {
  if (path.starts_with(kOwnMap)) path.remove_prefix(kOwnMap.size());
  return config::schema_path(path);
}

// Equal values of one kind; a default that the plugin holds as a float is the declared number's float.
bool same_default(const Json& own, const Json& declared) {
  if (!own.is_number() || !declared.is_number()) return own == declared;
  if (own == declared) return true;
  const auto a = own.get<double>(), b = declared.get<double>();
  const auto rounded = static_cast<float>(b);
  return own.is_number_float() && a == static_cast<double>(rounded);
}

std::string read_as(ReadAs as) {
  switch (as) {
    case ReadAs::i64: return "a whole number";
    case ReadAs::f64: return "a number";
    case ReadAs::boolean: return "true or false";
    case ReadAs::text: return "a text";
    case ReadAs::json: return "JSON";
  }
  return "";
}

// The keys from which the engine takes a setting by itself, so that the plugin need not read them.
std::set<std::string> keys_of_facts(const config::Declaration& declaration) {
  std::vector<std::string> open;
  const auto add = [&](const expression::Expression& e) {
    open.insert(open.end(), e.paths().begin(), e.paths().end());
  };
  for (const char* name : kFactsOfTheEngine) {
    const auto found = declaration.facts.find(name);
    if (found == declaration.facts.end()) continue;
    if (found->second.value) add(*found->second.value);
    for (const auto& [member, value] : found->second.members) add(value);
  }
  std::set<std::string> keys;
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    if (!keys.insert(path).second || !path.starts_with("lets.")) continue;
    for (const auto& [name, value] : declaration.lets) {
      if (path == "lets." + name) add(value);
    }
  }
  return keys;
}

class ReadCheck {
 public:
  ReadCheck(const config::Declaration& declaration, std::span<const PluginConfig* const> creates)
      : declaration_(declaration) {
    for (config::Key key : declaration.keys) {
      key.path = read_path(key.path);
      names_.push_back(key.path);
      schema_.put(std::move(key));
    }
    for (const PluginConfig* create : creates) {
      reads_.emplace_back(create->section(), create->reads());
      for (const ConfigRead& read : reads_.back().second) all_.emplace(read.path, read.as);
    }
  }

  std::vector<DeclaredFinding> run(Unread unread) {
    for (const auto& [path, as] : all_) check_declared(path, as);
    for (const auto& [path, as] : all_) {
      if (as == ReadAs::json) check_whole(path);
    }
    std::set<std::string> reported;
    for (const auto& [section, reads] : reads_) check_defaults(section, reads, reported);
    if (unread != Unread::ignore) check_unread(unread == Unread::warn);
    return std::move(findings_);
  }

 private:
  // A map whose keys are declared one by one.
  bool has_declared_keys(const std::string& path) const {
    const config::Key* key = schema_.find(path);
    return key && !key->open && !schema_.children(path).empty();
  }
  // `path` means all that a block or its plugin_config holds.
  bool is_everything(std::string_view path) const {
    const auto owned = [&](const config::Key& key) { return key.path.starts_with(kOwnMap); };
    if (path == "plugin_config") return std::ranges::any_of(declaration_.keys, owned);
    return path.empty() && !declaration_.keys.empty();
  }

  bool is_declared(const std::string& read) const {
    const std::string path = read_path(read);
    if (schema_.find(path)) return true;
    for (std::string above = path; above.find('.') != above.npos;) {
      above.resize(above.rfind('.'));
      const config::Key* key = schema_.find(above);
      if (key && (key->open || (key->kinds & config::kList))) return true;
      if (key) break;
    }
    const auto covers = [&](const std::string& known) { return is_at_or_below(path, config::schema_path(known)); };
    const auto gives = [&](const HostKey& key) {
      return is_at_or_below(path, key.name) && std::ranges::find(key.kinds, declaration_.kind) != key.kinds.end();
    };
    return std::ranges::any_of(declaration_.reads, covers) || std::ranges::any_of(host_keys(), gives);
  }

  void check_declared(const std::string& path, ReadAs as) {
    if (path.empty() || is_everything(path) || is_declared(path) || !undeclared_.insert(path).second) return;
    add(false, kUndeclaredKey, path,
        fmt::format("create reads {} as {}, and the manifest has it neither in keys nor in reads{}", path, read_as(as),
                    did_you_mean(read_path(path), names_)));
  }

  void check_whole(const std::string& path) {
    if (!is_everything(path) && !has_declared_keys(read_path(path))) return;
    add(false, kWholeSection, path,
        fmt::format("create reads {} as JSON, whose keys are declared: read them one by one",
                    path.empty() ? "the whole section" : path));
  }

  // The default of a plugin's own: the only one that it passed in one create.
  void check_defaults(const Json& section, const std::vector<ConfigRead>& reads, std::set<std::string>& reported) {
    std::map<std::string, std::vector<const Json*>> passed;
    for (const ConfigRead& read : reads) {
      std::vector<const Json*>& known = passed[read.path];
      const auto same = [&](const Json* value) { return *value == read.otherwise; };
      if (!read.otherwise.is_null() && std::ranges::none_of(known, same)) known.push_back(&read.otherwise);
    }
    for (const auto& [path, values] : passed) {
      if (values.size() == 1) check_default(section, path, *values.front(), reported);
    }
  }

  void check_default(const Json& section, const std::string& path, const Json& own, std::set<std::string>& reported) {
    const auto is_it = [&](const config::Key& key) { return read_path(key.path) == path; };
    const auto key = std::ranges::find_if(declaration_.keys, is_it);
    if (key == declaration_.keys.end()) return;
    const std::optional<Json> declared = config::declared_default(*key, section);
    if (!declared || declared->is_null() || declared->is_structured() || same_default(own, *declared)) return;
    if (!reported.insert(path).second) return;
    add(false, kOtherDefault, path,
        fmt::format("create reads {} with the default {}, and the manifest declares {}: give both one value", path,
                    json_text(own), json_text(*declared)));
  }

  bool was_read(const config::Key& key) const {
    const std::string name = read_path(key.path);
    return std::ranges::any_of(all_, [&](const auto& read) {
      const std::string path = read_path(read.first);
      if (is_at_or_below(path, name)) return true;
      const bool whole = read.first.empty() || is_at_or_below(name, path) || is_at_or_below(key.path, path);
      return read.second == ReadAs::json && whole;
    });
  }

  void check_unread(bool warning) {
    const std::set<std::string> told_by_facts = keys_of_facts(declaration_);
    for (const config::Key& key : declaration_.keys) {
      const auto chooses = [&](const auto& wanted) { return wanted.first == key.path; };
      const bool expected = key.status == config::Status::effective && key.stands_for.empty() &&
                            !has_declared_keys(read_path(key.path)) && !told_by_facts.contains(key.path) &&
                            std::ranges::none_of(declaration_.select, chooses);
      if (!expected || was_read(key)) continue;
      add(warning, kUnreadKey, key.path,
          fmt::format("{} is declared, and create reads it under none of the configurations: read it, declare it as "
                      "accepted, or add one of verify_configs under which it is read",
                      key.path));
    }
  }

  void add(bool warning, const char* rule, const std::string& key, std::string text) {
    findings_.push_back({warning, rule, key, std::move(text)});
  }

  const config::Declaration& declaration_;
  config::Schema schema_;           // the declared keys under the paths by which they are read
  std::vector<std::string> names_;  // these paths
  std::vector<std::pair<Json, std::vector<ConfigRead>>> reads_;  // of each create, with its section
  std::set<std::pair<std::string, ReadAs>> all_;
  std::set<std::string> undeclared_;
  std::vector<DeclaredFinding> findings_;
};

}  // namespace

std::vector<DeclaredFinding> check_reads(const config::Declaration& declaration,
                                         std::span<const PluginConfig* const> creates, Unread unread) {
  return ReadCheck(declaration, creates).run(unread);
}

std::span<const HostKey> host_keys() {
  // Those that cluster/process/start_workers.cpp and cluster/worker/start.cpp write.
  static const std::vector<HostKey> keys = {
      {"model_name", "text", {Kind::backend, Kind::generator}, "directory of the model, found on this machine"},
      {"reward_model_cfg.enabled",
       "bool",
       {Kind::backend},
       "the model has the head of a reward model; true where the algorithm is `rm`, else as it is written"},
      {"precision", "text", {Kind::generator}, "`policy.precision`"},
      {"max_total_sequence_length", "int", {Kind::generator}, "`policy.max_total_sequence_length`"},
      {"batch_invariant", "bool", {Kind::generator}, "`policy.batch_invariant`"},
      {"weights_follow",
       "bool",
       {Kind::generator},
       "an update brings weights before the first request: those of the directory need not be read"},
      {"return_routed_experts", "bool", {Kind::generator}, "samples come with the column `routed_experts`"},
      {"replica_index", "int", {Kind::generator}, "which of the generator's worlds this rank belongs to, from 0"},
      {"replica_count", "int", {Kind::generator}, "how many there are"},
  };
  return keys;
}

}  // namespace hexad::plugin

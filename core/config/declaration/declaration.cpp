#include "core/config/declaration/declaration.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/config/declaration/key_read.hpp"
#include "core/config/declaration/selection.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/file.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kParts = {"named", "select", "keys",  "lets",
                                         "facts", "rules",  "reads", "verify_configs"};
const std::vector<std::string> kRuleMembers = {"when", "require", "key", "message", "severity", "nearest"};
const std::vector<std::string> kFacts = {
    "copy_ranks",   "packs",         "sequence_multiple", "micro_batch_multiple", "outputs",          "differentiates",
    "needs_server", "shares_memory", "filtered_logprobs", "batch_invariant",      "learning_rate",    "max_grad_norm",
    "schedule",     "bytes",         "training_bytes",    "logprob_bytes",        "generation_bytes", "asleep_bytes",
    "refit_bytes",  "cache_bytes",   "cache_share",       "memory_keys",          "families"};

// Reads one declaration, with messages that name the file and the part.
class DeclarationReader {
 public:
  DeclarationReader(const Json& config, const std::string& where, Declaration& out)
      : config_(config), where_(where), out_(out) {}

  void read() {
    if (!config_.is_object()) refuse("config", fmt::format("got {}, wanted a mapping", json_text(config_)));
    for (const auto& part : config_.items()) {
      if (std::ranges::find(kParts, part.key()) == kParts.end())
        refuse(part.key(), fmt::format("no part of a configuration{}; wanted {}", did_you_mean(part.key(), kParts),
                                       joined(kParts)));
    }
    out_.named = texts("named");
    out_.reads = texts("reads");
    read_keys();
    read_select();
    read_lets();
    read_facts();
    read_rules();
    read_verify_configs();
  }

 private:
  [[noreturn]] void refuse(const std::string& part, const std::string& what) const {
    fail(ErrorKind::plugin, "{}: {}: {}", where_, part, what);
  }

  const Json* part(const char* name) const {
    const auto found = config_.find(name);
    return found == config_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& map_part(const char* name) const {
    static const Json none = Json::object();
    const Json* found = part(name);
    if (found && !found->is_object()) refuse(name, fmt::format("got {}, wanted a mapping", json_text(*found)));
    return found ? *found : none;
  }
  const Json& list_part(const char* name) const {
    static const Json none = Json::array();
    const Json* found = part(name);
    if (found && !found->is_array()) refuse(name, fmt::format("got {}, wanted a list", json_text(*found)));
    return found ? *found : none;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    for (const Json& item : list_part(name)) {
      if (!item.is_string()) refuse(name, fmt::format("got {}, wanted a text", json_text(item)));
      result.push_back(item.get<std::string>());
    }
    return result;
  }

  void read_keys() {
    out_.keys.reserve(map_part("keys").size());
    for (const auto& entry : map_part("keys").items()) {
      const std::string& path = entry.key();
      if (path.empty() || path.starts_with('.') || path.ends_with('.') || path.find("..") != path.npos)
        refuse("keys", fmt::format("'{}' is no path of names with dots between them", path));
      const size_t dot = path.rfind('.');
      const Key* section = dot == path.npos ? nullptr : out_.find(path.substr(0, dot));
      // Of a map that is open by its own word; what a plugin's `plugin_config` holds needs no key for the map itself.
      if (section && !(section->kinds & kMap))
        refuse("keys." + path, fmt::format("stands below {}, which is no map", section->path));
      if (!section && dot != path.npos && path.substr(0, dot) != "plugin_config")
        refuse("keys." + path,
               fmt::format("stands below {}, which is declared nowhere before it", path.substr(0, dot)));
      check_owner(path);
      Key key = read_key(path, entry.value(), section, where_);
      key.plugin = out_.plugin;
      out_.keys.push_back(std::move(key));
    }
    std::set<std::string> renamed;
    for (const Key& key : out_.keys) {
      for (const std::string& old : key.renamed_from) {
        if (out_.find(old) || !renamed.insert(old).second)
          refuse("keys." + key.path, fmt::format("renamed_from: {} is a key too", old));
      }
    }
  }

  // What the engine itself reads of the block is not a plugin's to own.
  void check_owner(const std::string& path) const {
    const std::string full = usual_block(out_.kind, out_.plugin) + "." + path;
    const Key* engines = core_schema().find(full);
    if (engines && engines->path == full && engines->status == Status::effective)
      refuse("keys." + path,
             fmt::format("{} is a key of the engine's own; a plugin that reads it has it in `reads`", full));
  }

  void read_select() {
    const Json& select = map_part("select");
    for (const auto& member : select.items()) {
      if (member.key() == "kind") {
        if (member.value() != Json(plugin::kind_name(out_.kind)))
          refuse("select", fmt::format("kind: got {}, and the manifest says {}", json_text(member.value()),
                                       plugin::kind_name(out_.kind)));
        continue;
      }
      if (member.key() != "when" || !member.value().is_object())
        refuse("select", fmt::format("got {}, wanted {{kind, when: {{key: value}}}}", json_text(select)));
      for (const auto& entry : member.value().items()) {
        if (!out_.find(entry.key())) refuse("select", fmt::format("{} is no key of this plugin", entry.key()));
        out_.select.emplace_back(entry.key(), default_value(yaml_of(entry.value())));
      }
    }
  }

  expression::Expression expression_of(const std::string& part, const Json& said) const {
    const std::string text = said.is_string() ? said.get<std::string>() : json_text(said);
    try {
      expression::Expression parsed = expression::Expression::parse(text);
      check_lets(part, parsed.paths());
      return parsed;
    } catch (const expression::ParseError& error) {
      refuse(part, fmt::format("'{}': {}", text, error.what()));
    }
  }

  // Every `lets.name` that is meant is declared before.
  void check_lets(const std::string& part, const std::vector<std::string>& paths) const {
    for (const std::string& path : paths) {
      if (!path.starts_with("lets.") || lets_.contains(path)) continue;
      refuse(part, fmt::format("{} is not declared before{}", path,
                               did_you_mean(path, std::vector<std::string>(lets_.begin(), lets_.end()))));
    }
  }

  void read_lets() {
    for (const auto& entry : map_part("lets").items()) {
      const std::string path = "lets." + entry.key();
      out_.lets.emplace_back(entry.key(), expression_of(path, entry.value()));
      lets_.insert(path);
    }
  }

  void read_facts() {
    for (const auto& entry : map_part("facts").items()) {
      const std::string at = "facts." + entry.key();
      if (std::ranges::find(kFacts, entry.key()) == kFacts.end())
        refuse(at, fmt::format("no fact that the engine asks for{}; known: {}", did_you_mean(entry.key(), kFacts),
                               joined(kFacts)));
      Fact& fact = out_.facts[entry.key()];
      if (!entry.value().is_object()) {
        fact.value = expression_of(at, entry.value());
        continue;
      }
      for (const auto& member : entry.value().items()) {
        expression::Expression parsed = expression_of(at + "." + member.key(), member.value());
        if (member.key() == "when")
          fact.when = std::move(parsed);
        else if (member.key() == "value")
          fact.value = std::move(parsed);
        else
          fact.members.emplace(member.key(), std::move(parsed));
      }
    }
  }

  std::optional<Nearest> nearest_of(const std::string& at, const Json& said) const {
    const bool fits = said.is_object() && said.size() == 3 && said.contains("value") && said.contains("most") &&
                      said.contains("holds");
    if (!fits) refuse(at, fmt::format("got {}, wanted {{value, most, holds}}", json_text(said)));
    return Nearest{expression_of(at, said["value"]), expression_of(at, said["most"]), expression_of(at, said["holds"])};
  }

  void read_rules() {
    const Json& rules = list_part("rules");
    out_.rules.reserve(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) {
      const Json& rule = rules[i];
      const std::string at = fmt::format("rules[{}]", i);
      if (!rule.is_object()) refuse(at, fmt::format("got {}, wanted a mapping", json_text(rule)));
      for (const auto& member : rule.items()) {
        if (std::ranges::find(kRuleMembers, member.key()) == kRuleMembers.end())
          refuse(at,
                 fmt::format("'{}' is no member of a rule{}", member.key(), did_you_mean(member.key(), kRuleMembers)));
      }
      for (const char* needed : {"require", "key", "message"}) {
        if (!rule.contains(needed)) refuse(at, fmt::format("'{}' is missing", needed));
      }
      const Json severity = rule.value("severity", Json("error"));
      if (severity != "error" && severity != "notice")
        refuse(at, fmt::format("severity: got {}, wanted error or notice", json_text(severity)));
      if (!rule["key"].is_string() || !rule["message"].is_string()) refuse(at, "key and message must be texts");
      out_.rules.push_back(
          {rule.contains("when") ? std::optional(expression_of(at + ".when", rule["when"])) : std::nullopt,
           expression_of(at + ".require", rule["require"]), rule["key"].get<std::string>(),
           message_of(at, rule["message"].get<std::string>()), severity == "notice",
           rule.contains("nearest") ? nearest_of(at + ".nearest", rule["nearest"]) : std::nullopt});
    }
  }

  expression::Message message_of(const std::string& at, const std::string& text) const {
    try {
      expression::Message parsed = expression::Message::parse(text);
      check_lets(at + ".message", parsed.paths());
      return parsed;
    } catch (const expression::ParseError& error) {
      refuse(at + ".message", fmt::format("'{}': {}", text, error.what()));
    }
  }

  void read_verify_configs() {
    for (const Json& config : list_part("verify_configs")) {
      if (!config.is_object())
        refuse("verify_configs", fmt::format("got {}, wanted a mapping from key to value", json_text(config)));
      out_.verify_configs.push_back(config);
    }
  }

  const Json& config_;
  const std::string& where_;
  Declaration& out_;
  std::unordered_set<std::string> lets_;  // their paths, so far
};

// Keys whose path stands twice differ in nothing that JSON keeps; YAML's own reader refuses them with their lines.
Json json_of_yaml(const std::string& text, const std::string& name) { return yaml::read_text(text, name).to_json(); }

}  // namespace

const Key* Declaration::find(std::string_view path) const {
  const auto found = std::ranges::find(keys, path, &Key::path);
  return found == keys.end() ? nullptr : &*found;
}

std::optional<Declaration> read_declaration(const plugin::Manifest& manifest, const std::string& where) {
  Json config = plugin::config_json(manifest, where);
  if (config.is_null()) return std::nullopt;
  if (config.is_string()) config = json_of_yaml(config.get<std::string>(), where);
  Declaration result;
  result.kind = manifest.kind;
  result.plugin = manifest.name;
  result.manifest = where;
  DeclarationReader(config, where, result).read();
  return result;
}

Json compile_declaration(const std::filesystem::path& keys_yaml, plugin::Kind kind, const std::string& plugin) {
  const Json config = yaml::read_file(keys_yaml).to_json();
  Declaration checked;
  checked.kind = kind;
  checked.plugin = plugin;
  const std::string where = keys_yaml.string();
  DeclarationReader(config, where, checked).read();
  return config;
}

}  // namespace hexad::config

#include "app/plugin/plugin.hpp"

#include "app/config/reference.hpp"
#include "app/config/reference_plugin.hpp"
#include "core/manifest/discovery.hpp"
#include "core/plugin/precheck.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const Candidate& candidate, const Options& options) {
  Json json;
  if (const auto& m = candidate.manifest) {
    json["kind"] = kind_name(m->kind);
    json["name"] = m->name;
    json["version"] = m->version;
    json["library"] = candidate.library().string();
    if (m->sha256.empty()) {
      json["build"] = m->build;
    } else {
      json["sha256"] = m->sha256;
      json["size"] = m->size;
    }
    json["abi"] = fmt::format("{}.{}", m->abi_major, m->min_host_minor);
    json["arch"] = m->arch;
    json["memory"] = m->memory;
    json["requires"] = m->requirements;
    json["license"] = m->license;
  }
  json["manifest"] = candidate.manifest_path.string();
  const Status status = status_of(candidate, options);
  json["status"] = status.state;
  if (!status.reason.empty()) json["reason"] = status.reason;
  return json;
}

std::string plain(const Json& value) {
  if (value.is_string()) return one_line(value.get<std::string>());
  std::string text;
  for (const auto& [key, element] : value.items()) {
    if (!value.is_structured()) return json_text(value);
    text += (text.empty() ? "" : ", ") + (value.is_object() ? one_line(key) + " " : "") + plain(element);
  }
  return text;
}

// "ok"; "not built: make build".
std::string status_line(const Json& plugin) {
  const std::string status = plain(plugin.at("status"));
  return status == "not built" ? status + ": " + plain(plugin.at("build")) : status;
}

void print_info(const Json& plugin, std::ostream& out) {
  for (const auto& [key, value] : plugin.items()) {
    if (value.empty() || key == "build") continue;
    out << fmt::format("{:<9} {}\n", key, key == "status" ? status_line(plugin) : plain(value));
  }
}

// The keys that the plugin declares; nothing where it declares none. What is wrong with them becomes the "problem".
std::vector<config::Key> declared_keys(const Candidate& candidate, Json& plugin) {
  try {
    const auto declaration = config::read_declaration(*candidate.manifest, candidate.manifest_path.string());
    return declaration ? config::plugin_keys(*declaration) : std::vector<config::Key>();
  } catch (const Error& error) {
    plugin["problem"] = error.what();
    return {};
  }
}

}  // namespace

Status status_of(const Candidate& candidate, const Options& options) {
  if (!candidate.problem.empty()) return {"refused", candidate.problem};
  if (!candidate.shadowed_by.empty()) return {"shadowed", "by " + candidate.shadowed_by.string()};
  if (!options.enabled) return {"refused", "plugins.enabled is false"};
  if (is_unbuilt(candidate)) return {"not built", ""};
  try {
    check_before_load(candidate, options, nullptr);
    return {"ok", ""};
  } catch (const Error& error) {
    return {"refused", error.what()};
  }
}

int list_plugins(const Options& options, bool json, std::ostream& out) {
  const Discovery found = discover(options);
  Json plugins = Json::array(), searched = Json::array();
  for (const Candidate& candidate : found.candidates) plugins.push_back(describe(candidate, options));
  for (const Folder& folder : found.folders) {
    searched.push_back({{"path", folder.path.string()},
                        {"origin", folder.origin},
                        {"exists", folder.exists},
                        {"manifests", folder.manifests}});
  }
  if (json) {
    out << json_text(Json{{"plugins", plugins}, {"searched", searched}}, 2) << '\n';
    return 0;
  }
  for (const Json& plugin : plugins) {
    if (!plugin.contains("name")) {
      out << fmt::format("{:<9} {:<20} {:<9} {:<9} {}\n", "?", "?", "", "refused", plain(plugin.at("manifest")));
    } else {
      out << fmt::format("{:<9} {:<20} {:<9} {:<9} {}\n", plain(plugin["kind"]), plain(plugin["name"]),
                         plain(plugin["version"]), status_line(plugin), plain(plugin["library"]));
    }
    if (plugin.contains("reason")) out << "          " << plain(plugin["reason"]) << '\n';
  }
  out << "searched:\n";
  for (const Folder& folder : found.folders)
    out << fmt::format("  {:<18} {}\n", folder.origin, one_line(folder.text()));
  return 0;
}

int plugin_info(const Options& options, const std::string& name, bool json, std::ostream& out) {
  std::vector<Candidate> matches;
  if (is_plugin_path(name)) {
    matches.push_back(find_path(name));
  } else {
    const Discovery found = discover(options);
    for (const Candidate& candidate : found.candidates) {
      if (candidate.manifest && candidate.manifest->name == name) matches.push_back(candidate);
    }
    if (matches.empty()) fail_not_found(found, std::nullopt, name);
  }
  Json all = Json::array();
  for (const Candidate& candidate : matches) {
    Json plugin = describe(candidate, options);
    const std::vector<config::Key> keys = declared_keys(candidate, plugin);
    if (json) {
      plugin["keys"] = Json::array();
      for (const config::Key& key : keys) plugin["keys"].push_back(config::key_json(key));
      all.push_back(std::move(plugin));
      continue;
    }
    if (&candidate != &matches.front()) out << '\n';
    print_info(plugin, out);
    if (!keys.empty()) out << "keys:\n" << config::key_table(keys);
  }
  if (json) out << json_text(all, 2) << '\n';
  return 0;
}

}  // namespace hexad::plugin

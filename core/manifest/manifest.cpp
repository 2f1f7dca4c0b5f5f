#include "core/manifest/manifest.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/base/file/resolved_file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_members.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kMaxBytes = size_t{256} * 1024;
constexpr size_t kMaxDepth = 16;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::plugin, format, std::forward<Args>(args)...);
}

[[noreturn]] void refuse_manifest(const std::string& file, const char* what, int reason) {
  refuse("{}: {}: {}", file, what, std::strerror(reason));
}

// The text without the value of `config`, which goes to `config`: it may be most of the text. Of a text that cannot be
// cut, the whole: its parser says why.
std::string cut_config(std::string_view text, std::string& config) {
  std::string rest = "{";
  const std::optional<JsonMembers> members = json_members(text);
  if (!members) return std::string(text);
  for (const auto& [name, value] : *members) {
    const bool is_first_config = name == "config" && config.empty();
    rest += fmt::format("{}\"{}\":{}", rest.size() == 1 ? "" : ",", name, is_first_config ? "null" : value);
    if (is_first_config) config = value;
  }
  return rest + "}";
}

// One object's fields, with messages that name the key.
class Fields {
 public:
  Fields(const Json& object, const std::string& where) : object_(object), where_(where) {
    if (!object.is_object()) refuse("{}: must be a JSON object, got {}", where, object.type_name());
  }
  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) refuse("{}: key '{}' is missing", where_, key);
    return *found;
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) refuse("{}: '{}' must be a text, got {}", where_, key, json_text(value));
    return value.get<std::string>();
  }
  std::string text_or(const char* key, const char* otherwise) const {
    return object_.contains(key) ? text(key) : otherwise;
  }
  int64_t integer(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 1e15) {
      refuse("{}: '{}' must be a whole number, not negative, got {}", where_, key, json_text(value));
    }
    return value.get<int64_t>();
  }
  bool has(const char* key) const { return object_.contains(key); }

 private:
  const Json& object_;
  const std::string& where_;
};

bool is_hex64(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// A file beside the manifest.
std::string own_file(const std::string& name, const char* key, const std::string& where) {
  if (name.empty() || name.find('/') != std::string::npos || name[0] == '.')
    refuse("{}: {} '{}' must be a file name in the manifest's own directory", where, key, name);
  return name;
}

void read_lists(const Fields& fields, const std::string& where, Manifest& manifest) {
  if (fields.has("memory")) {
    for (const Json& kind : fields.at("memory")) {
      if (kind != "host" && kind != "cuda")
        refuse("{}: 'memory' lists \"host\" and \"cuda\", got {}", where, json_text(kind));
      manifest.memory.push_back(kind);
    }
  }
  if (fields.has("verify_config")) {
    const Json& keys = fields.at("verify_config");
    const auto is_key = [](const Json& key) {
      return key.is_string() && key.get_ref<const std::string&>().find('=') + 1 > 1;
    };
    if (!keys.is_array() || !std::all_of(keys.begin(), keys.end(), is_key))
      refuse("{}: 'verify_config' must be a list of KEY=VALUE texts, got {}", where, json_text(keys));
    for (const Json& key : keys) manifest.verify_config.push_back(key.get<std::string>());
  }
  if (fields.has("requires")) {
    const Json& requirements = fields.at("requires");
    if (!requirements.is_object()) refuse("{}: 'requires' must be an object, got {}", where, json_text(requirements));
    for (const auto& [name, version] : requirements.items()) {
      if (!version.is_string())
        refuse("{}: requires.{} must be a version text, got {}", where, name, json_text(version));
      manifest.requirements[name] = version.get<std::string>();
    }
  }
}

Kind read_kind(const std::string& kind, const std::string& where) {
  if (!kind_from(kind)) refuse("{}: kind '{}' is none of backend, generator, loss, environment", where, kind);
  return *kind_from(kind);
}

std::string read_name(const std::string& name, const std::string& where) {
  if (valid_plugin_name(name)) return name;
  refuse("{}: name '{}' must be 2 to 63 characters, a-z first, then a-z, 0-9 and _", where, name);
}

void read_further(const Fields& fields, const std::string& where, Manifest& manifest) {
  if (!fields.has("also")) return;
  if (!fields.at("also").is_array())
    refuse("{}: 'also' must be a list of objects, got {}", where, json_text(fields.at("also")));
  for (const Json& each : fields.at("also")) {
    const Fields further(each, where);
    PluginName name{read_kind(further.text("kind"), where), read_name(further.text("name"), where)};
    if (name == manifest.plugin() || std::ranges::find(manifest.also, name) != manifest.also.end())
      refuse("{}: 'also' names {} '{}' a second time", where, kind_name(name.kind), name.name);
    manifest.also.push_back(std::move(name));
  }
}

void read_inputs(const Fields& fields, const std::string& where, Manifest& manifest) {
  if (!fields.has("inputs")) return;
  const Json& inputs = fields.at("inputs");
  const auto is_text = [](const Json& name) { return name.is_string(); };
  const auto is_list = [&](const Json& names) { return names.is_array() && std::ranges::all_of(names, is_text); };
  if (!inputs.is_object() || !std::ranges::all_of(inputs, is_list))
    refuse("{}: 'inputs' must have a list of names for each loss, got {}", where, json_text(inputs));
  for (const auto& [loss, names] : inputs.items()) manifest.inputs[loss] = names.get<std::vector<std::string>>();
}

}  // namespace

Manifest Manifest::of(const PluginName& further) const {
  Manifest manifest = *this;
  manifest.kind = further.kind, manifest.name = further.name;
  manifest.verify_config.clear(), manifest.also.clear();
  manifest.config.clear(), manifest.check_library.clear(), manifest.check_sha256.clear();
  return manifest;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::backend: return "backend";
    case Kind::generator: return "generator";
    case Kind::loss: return "loss";
    case Kind::environment: return "environment";
  }
  return "unknown kind";
}

std::optional<Kind> kind_from(std::string_view name) {
  for (const Kind kind : kKinds) {
    if (name == kind_name(kind)) return kind;
  }
  return std::nullopt;
}

bool valid_plugin_name(std::string_view name) {
  return name.size() >= 2 && name.size() <= 63 && name[0] >= 'a' && name[0] <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  if (text.size() > kMaxBytes) refuse("{}: {} bytes, a manifest has at most {}", where, text.size(), kMaxBytes);
  Manifest manifest;
  const Json json = parse_bounded(cut_config(text, manifest.config), kMaxDepth, where);
  const Fields fields(json, where);
  if (const int64_t format = fields.integer("format"); format != 1) {
    refuse("{}: manifest format {}, this engine reads format 1", where, format);
  }
  manifest.kind = read_kind(fields.text("kind"), where);
  manifest.name = read_name(fields.text("name"), where);
  manifest.version = fields.text("version");
  manifest.library = own_file(fields.text("library"), "library", where);
  const Fields abi(fields.at("abi"), where);
  manifest.abi_major = abi.integer("major");
  manifest.min_host_minor = abi.integer("min_host_minor");
  manifest.arch = fields.text("arch");
  if (fields.has("sha256") || fields.has("size")) {  // neither: the library is not built
    manifest.sha256 = fields.text("sha256");
    if (!is_hex64(manifest.sha256)) refuse("{}: sha256 must be 64 lower-case hex digits", where);
    manifest.size = static_cast<uint64_t>(fields.integer("size"));
  }
  manifest.build = fields.text_or("build", "make build");
  manifest.license = fields.text_or("license", "");
  read_lists(fields, where, manifest);
  read_further(fields, where, manifest);
  read_inputs(fields, where, manifest);
  if (fields.has("check")) {
    const Fields check(fields.at("check"), where);
    manifest.check_library = own_file(check.text("library"), "check.library", where);
    manifest.check_sha256 = check.text("sha256");
    if (!is_hex64(manifest.check_sha256)) refuse("{}: check.sha256 must be 64 lower-case hex digits", where);
  }
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& path, std::optional<std::string>* insecure) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    refuse("{}: no manifest there (not a regular file)", path.string());
  if (insecure) {
    const ResolvedFile file(path, refuse_manifest);
    *insecure = file.insecure();
    std::string text(std::min<uint64_t>(file.size(), kMaxBytes + 1), '\0');
    if (!file.read(std::as_writable_bytes(std::span(text)))) refuse("{}: became shorter", path.string());
    return parse_manifest(text, path.string());
  }
  InputFile file(path, refuse_manifest);
  const uintmax_t size = std::filesystem::file_size(path, error);
  std::string text(error || size > kMaxBytes ? kMaxBytes + 1 : size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_manifest(text, path.string());
}

nlohmann::ordered_json config_json(const Manifest& manifest, const std::string& where) {
  return manifest.config.empty() ? Json() : parse_bounded(manifest.config, kMaxDepth - 1, where);
}

}  // namespace hexad::plugin

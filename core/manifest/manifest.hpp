// A plugin's manifest: libNAME.hexad.json beside libNAME.so, what is known of a plugin before a byte of its code is
// mapped.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hexad/abi.h>
#include <nlohmann/json.hpp>

namespace hexad::plugin {

enum class Kind : int32_t {
  backend = HEXAD_KIND_BACKEND,
  generator = HEXAD_KIND_GENERATOR,
  loss = HEXAD_KIND_LOSS,
  environment = HEXAD_KIND_ENVIRONMENT,
};
inline constexpr Kind kKinds[] = {Kind::backend, Kind::generator, Kind::loss, Kind::environment};
std::string_view kind_name(Kind kind);
std::optional<Kind> kind_from(std::string_view name);

// [a-z][a-z0-9_]{1,62}
bool valid_plugin_name(std::string_view name);

// One of the plugins of a library.
struct PluginName {
  Kind kind = Kind::loss;
  std::string name;
  bool operator==(const PluginName&) const = default;
};

struct Manifest {
  Kind kind = Kind::loss;
  std::string name;
  std::string version;
  std::string library;  // file name; the library lies in the manifest's own directory
  int64_t abi_major = 0;
  int64_t min_host_minor = 0;
  std::string arch;                                 // "x86_64-linux-gnu"
  std::string sha256;                               // 64 lower-case hex digits; empty: the library is not built
  uint64_t size = 0;                                // bytes
  std::string build = "make build";                 // what builds the library
  std::vector<std::string> memory;                  // "host", "cuda"
  std::map<std::string, std::string> requirements;  // "libtorch", "cuda", "glibc" -> version it was built with
  std::string license;
  // KEY=VALUE of plugin_config without which the conformance kit can make no instance; {dir} in them is the folder that
  // the manifest lies in.
  std::vector<std::string> verify_config;
  // What the plugin says of its configuration (core/config/declaration), as JSON text, which only its reader parses
  // (config_json): an object, or a text, which is a keys.yaml. Empty: nothing.
  std::string config;
  // Its check library (hexad/check.h), a file name in the manifest's own directory, and its digest; empty: none.
  std::string check_library, check_sha256;
  // Further plugins of the same library (hexad_plugin_desc.next). All but kind and name is the manifest's, its
  // configuration left out: that is the first one's.
  std::vector<PluginName> also;
  // What batches must have for each loss of the library, by its name; a loss that is not in it: unknown.
  std::map<std::string, std::vector<std::string>> inputs;

  PluginName plugin() const { return {kind, name}; }
  // The manifest of one of `also`.
  Manifest of(const PluginName& further) const;
};

inline constexpr std::string_view kManifestSuffix = ".hexad.json";

// Reads a manifest: JSON of at most 256 KiB, 16 levels, no key twice, every field of its type; keys it does not know
// are ignored (later formats may add some). `where` names the file in messages. Throws Error(plugin).
Manifest parse_manifest(std::string_view text, const std::string& where);
// `insecure` takes what others could have changed of the file that is read (lib/base/file/permissions.hpp), or nothing.
Manifest read_manifest(const std::filesystem::path& path, std::optional<std::string>* insecure = nullptr);

// The manifest's `config`, parsed within the same limits; null if there is none.
nlohmann::ordered_json config_json(const Manifest& manifest, const std::string& where);

}  // namespace hexad::plugin

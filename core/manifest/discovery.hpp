// Where plugins are looked for, and what is found there. Only manifests are read: no code is opened.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/manifest/manifest.hpp"
#include "core/manifest/options.hpp"

namespace hexad::plugin {

// A directory of the search path, in order.
struct Folder {
  std::filesystem::path path;
  std::string origin;  // "plugins.paths", "HEXAD_PLUGIN_PATH", "user" or "engine"
  bool exists = false;
  bool trusted = false;  // the engine's own folder: as trusted as the program that lies beside it
  size_t manifests = 0;
  std::string problem = "";  // why it cannot be looked into; else empty

  // "/a/b (3 manifests)", "/a/b (missing)", "/a/b: cannot be listed: Permission denied".
  std::string text() const;
};

// A manifest found in a folder.
struct Candidate {
  std::filesystem::path manifest_path;
  std::optional<Manifest> manifest;     // empty: `problem` says why it cannot be read
  std::string problem;                  // why this one is refused (bad manifest, twice in one folder); else empty
  std::filesystem::path shadowed_by;    // manifest of the same kind and name in an earlier folder; else empty
  bool trusted = false;                 // of a trusted folder
  std::optional<std::string> insecure;  // what others could have changed of the manifest, where it is not trusted

  std::filesystem::path library() const;
};

struct Discovery {
  std::vector<Folder> folders;
  std::vector<Candidate> candidates;  // by folder, then by file name
};

// plugins.paths in order, HEXAD_PLUGIN_PATH (":"-separated), the user's own $XDG_DATA_HOME/hexad/plugins (default
// ~/.local/share/hexad/plugins; set-uid programs ignore both), then the engine's own <program's
// directory>/../lib/hexad/plugins and the same with /1. Relative entries count from the working directory.
std::vector<Folder> search_path(const Options& options);

// Reads every manifest of the search path. Never throws for what it finds.
Discovery discover(const Options& options);

// Whether a plugin is named by a path, to its .so or its manifest: by what has a '/'.
bool is_plugin_path(std::string_view name);

// The one plugin that `name` means: a name of the search path, or a path, whose library's first plugin of `kind` it is.
// Throws Error(plugin) with the searched folders and the nearest name, or with the reason why the one found is refused.
Candidate find_plugin(const Options& options, Kind kind, const std::string& name);

// The plugin of a path, of whatever kind. A relative one counts from the working directory. Throws Error(plugin).
Candidate find_path(const std::filesystem::path& path);

// Throws the "not found" error for a plugin of `kind`, or of any kind.
[[noreturn]] void fail_not_found(const Discovery& found, std::optional<Kind> kind, const std::string& name);

}  // namespace hexad::plugin

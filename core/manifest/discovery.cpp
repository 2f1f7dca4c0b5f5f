#include "core/manifest/discovery.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/text.hpp"
#include "lib/installation/home.hpp"

namespace hexad::plugin {
namespace {

namespace fs = std::filesystem;

void add_folder(std::vector<Folder>& folders, const fs::path& path, std::string origin, bool trusted) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  const auto same = [&](const Folder& f) { return f.path == absolute; };
  if (std::any_of(folders.begin(), folders.end(), same)) return;
  folders.push_back({absolute, std::move(origin), fs::is_directory(absolute, error), trusted, 0});
}

std::vector<fs::path> manifests_in(Folder& folder) {
  std::vector<fs::path> files;
  try {
    if (folder.exists)
      for (const fs::directory_entry& entry : entries_of(folder.path))
        if (entry.path().filename().string().ends_with(kManifestSuffix)) files.push_back(entry.path());
  } catch (const Error& error) {
    folder.problem = error.what();
  }
  return files;
}

Candidate read_candidate(const fs::path& manifest_path, bool trusted) {
  Candidate candidate;
  candidate.manifest_path = manifest_path;
  candidate.trusted = trusted;
  try {
    candidate.manifest = read_manifest(manifest_path, trusted ? nullptr : &candidate.insecure);
  } catch (const Error& error) {
    candidate.problem = error.what();
  }
  return candidate;
}

// The further plugins of a folder's libraries, but for those that have a manifest of their own there.
void add_further(std::vector<Candidate>& candidates, size_t folder_begin) {
  const size_t folder_end = candidates.size();
  for (size_t i = folder_begin; i < folder_end; ++i) {
    if (!candidates[i].manifest || candidates[i].manifest->also.empty()) continue;
    const Candidate first = candidates[i];
    for (const PluginName& further : first.manifest->also) {
      const auto is_it = [&](const Candidate& c) { return c.manifest && c.manifest->plugin() == further; };
      if (std::any_of(candidates.begin() + folder_begin, candidates.begin() + folder_end, is_it)) continue;
      candidates.push_back(first);
      candidates.back().manifest = first.manifest->of(further);
    }
  }
}

bool same_plugin(const Candidate& a, const Candidate& b) {
  return a.manifest && b.manifest && a.manifest->plugin() == b.manifest->plugin();
}

// Marks later candidates of the same kind and name: shadowed across folders, an error of both within one.
void mark_repeats(std::vector<Candidate>& candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      Candidate &a = candidates[j], &b = candidates[i];
      if (!same_plugin(a, b)) continue;
      if (a.manifest_path.parent_path() == b.manifest_path.parent_path()) {
        const std::string problem =
            fmt::format("{} and {} are both {} '{}': remove one", a.manifest_path.string(), b.manifest_path.string(),
                        kind_name(a.manifest->kind), a.manifest->name);
        a.problem = b.problem = problem;
      } else if (b.shadowed_by.empty()) {
        b.shadowed_by = a.manifest_path;
      }
    }
  }
}

}  // namespace

std::string Folder::text() const {
  if (!problem.empty()) return problem;
  if (!exists) return path.string() + " (missing)";
  return fmt::format("{} ({} manifest{})", path.string(), manifests, manifests == 1 ? "" : "s");
}

fs::path Candidate::library() const { return manifest ? manifest_path.parent_path() / manifest->library : fs::path(); }

std::vector<Folder> search_path(const Options& options) {
  std::vector<Folder> folders;
  for (const fs::path& path : options.paths) add_folder(folders, path, "plugins.paths", false);
  if (const char* list = secure_getenv("HEXAD_PLUGIN_PATH")) {
    for (std::string_view rest = list; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) add_folder(folders, rest.substr(0, end), "HEXAD_PLUGIN_PATH", false);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (const fs::path user = installation::user_folder(); !user.empty())
    add_folder(folders, user / "plugins", "user", false);
  const fs::path own = installation::home() / "lib/hexad/plugins";
  add_folder(folders, own, "engine", true);
  add_folder(folders, own / "1", "engine", true);
  return folders;
}

Discovery discover(const Options& options) {
  Discovery found{search_path(options), {}};
  for (Folder& folder : found.folders) {
    const size_t begin = found.candidates.size();
    for (const fs::path& manifest : manifests_in(folder)) {
      found.candidates.push_back(read_candidate(manifest, folder.trusted));
      ++folder.manifests;
    }
    add_further(found.candidates, begin);
  }
  mark_repeats(found.candidates);
  return found;
}

bool is_plugin_path(std::string_view name) { return name.find('/') != std::string_view::npos; }

Candidate find_path(const fs::path& given) {
  std::error_code error;
  const fs::path path = fs::absolute(given, error).lexically_normal();
  if (!fs::exists(path, error)) fail(ErrorKind::plugin, "{}: no such plugin file", path.string());
  if (fs::is_directory(path, error))
    fail(ErrorKind::plugin, "{}: is a folder: name a .so in it, or list the folder in plugins.paths", path.string());
  fs::path manifest = path;
  if (!path.filename().string().ends_with(kManifestSuffix)) {
    manifest.replace_extension();
    manifest += kManifestSuffix;
    if (!fs::exists(manifest, error)) {
      fail(ErrorKind::plugin, "{}: its manifest {} is missing. hexad_add_plugin writes it: copy both files",
           path.string(), manifest.string());
    }
  }
  Candidate candidate = read_candidate(manifest, false);
  if (!candidate.manifest) throw Error(ErrorKind::plugin, candidate.problem);
  return candidate;
}

void fail_not_found(const Discovery& found, std::optional<Kind> kind, const std::string& name) {
  std::vector<std::string> names;
  std::string searched, broken, hint;
  for (const Candidate& c : found.candidates) {
    if (c.manifest && (!kind || c.manifest->kind == *kind)) names.push_back(c.manifest->name);
    if (c.manifest && c.manifest->name == name) hint = fmt::format(" '{}' is a {}.", name, kind_name(c.manifest->kind));
    if (!c.manifest) broken += "\n  unreadable: " + c.problem;
  }
  for (const Folder& folder : found.folders) searched += (searched.empty() ? "" : ", ") + folder.text();
  if (name.ends_with(".so")) hint = fmt::format(" A file is named by its path: ./{}.", name);
  if (const auto guess = nearest(name, names); guess && hint.empty()) hint = fmt::format(" Did you mean '{}'?", *guess);
  fail(ErrorKind::plugin, "{}plugin '{}' not found.{} searched: {}. Set plugins.paths or HEXAD_PLUGIN_PATH{}",
       kind ? fmt::format("{} ", kind_name(*kind)) : "", name, hint, searched, broken);
}

Candidate find_plugin(const Options& options, Kind kind, const std::string& name) {
  if (is_plugin_path(name)) {
    Candidate candidate = find_path(name);
    const Manifest manifest = *candidate.manifest;
    const auto further = std::ranges::find(manifest.also, kind, &PluginName::kind);
    if (manifest.kind != kind && further != manifest.also.end()) {
      candidate.manifest = manifest.of(*further);
    } else if (manifest.kind != kind) {
      fail(ErrorKind::plugin, "{}: is a {} plugin, wanted a {}", name, kind_name(candidate.manifest->kind),
           kind_name(kind));
    }
    return candidate;
  }
  const Discovery found = discover(options);
  for (const Candidate& candidate : found.candidates) {
    if (!candidate.manifest || candidate.manifest->kind != kind || candidate.manifest->name != name) continue;
    if (!candidate.problem.empty()) throw Error(ErrorKind::plugin, candidate.problem);
    return candidate;
  }
  fail_not_found(found, kind, name);
}

}  // namespace hexad::plugin

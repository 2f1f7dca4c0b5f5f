#include "lib/installation/wheel.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/text.hpp"
#include "lib/elf/links.hpp"
#include "lib/installation/home.hpp"

#ifndef HEXAD_BUILT_TORCH  // the build says it (lib/CMakeLists.txt)
#define HEXAD_BUILT_TORCH ""
#endif

namespace hexad::installation {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end; entry.increment(unreadable))
    found.push_back(entry->path());
  std::ranges::sort(found);
  return found;
}

// Of each Python 3 that has a folder below this prefix.
void add_pythons(const fs::path& prefix, std::vector<fs::path>& sites) {
  for (const char* lib : {"lib", "lib64"})
    for (const fs::path& python : entries(prefix / lib))
      if (python.filename().string().starts_with("python3"))
        for (const char* packages : {"site-packages", "dist-packages"})
          if (is_there(python / packages)) sites.push_back(python / packages);
}

fs::path from_environment(const char* name, const char* below = "") {
  const char* value = ::secure_getenv(name);
  if (!value || !*value) return {};
  return *below ? fs::path(value) / below : fs::path(value);
}

fs::path cache_folder() {
  for (const fs::path& folder : {from_environment("HEXAD_CACHE"), from_environment("XDG_CACHE_HOME", "hexad"),
                                 from_environment("HOME", ".cache/hexad")})
    if (!folder.empty()) return folder;
  return {};
}

// What stands between the first two quotation marks behind `sign`.
std::string quoted_behind(const std::string& text, const std::string& sign) {
  const size_t at = text.find(sign), begin = text.find_first_of("'\"", at);
  if (at == text.npos || begin == text.npos) return "";
  return text.substr(begin + 1, text.find_first_of("'\"", begin + 1) - begin - 1);
}

// Of the wheel in this site: of the module itself, else of pip's record of it.
std::string version_in(const fs::path& site, const Wheel& wheel) {
  const fs::path module = site / wheel.name / "version.py";
  if (is_there(module)) {
    const std::string version = quoted_behind(read_regular_file(module), "__version__ =");
    if (!version.empty()) return version;
  }
  const std::string begin = wheel.name + "-", end = ".dist-info";
  for (const fs::path& entry : entries(site)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(begin) && name.ends_with(end))
      return name.substr(begin.size(), name.size() - begin.size() - end.size());
  }
  return "";
}

// "2.11.0+cu130" is 2.11.0 for what is linked with it.
bool is_version(const Wheel& wheel, const std::string& version) {
  return version.empty() || version.substr(0, version.find('+')) == wheel.version;
}

// Folders in which the loader looks for what `ours` needs, before any that we could name.
std::vector<fs::path> loader_folders(const fs::path& ours, const elf::Links& links) {
  std::vector<fs::path> folders;
  const std::string list = from_environment("LD_LIBRARY_PATH").string();
  for (size_t begin = 0, end = 0; !list.empty() && end != list.npos; begin = end + 1) {
    end = list.find(':', begin);
    if (end != begin) folders.push_back(list.substr(begin, end - begin));
  }
  for (const std::string& each : links.run_paths.empty() ? links.rpaths : links.run_paths)
    folders.push_back(replaced(each, "$ORIGIN", ours.parent_path().string()));
  return folders;
}

std::optional<Site> by_loader(const fs::path& ours, const elf::Links& links, const Wheel& wheel) {
  const fs::path library = wheel.library;
  for (const fs::path& folder : loader_folders(ours, links)) {
    if (!is_there(folder / library.filename())) continue;
    const fs::path own = library.has_parent_path() ? folder.parent_path() : folder;
    return Site{own.parent_path(), version_in(own.parent_path(), wheel)};
  }
  return std::nullopt;
}

// A library that lies where only root or the user can change it, and whose links alone are read.
elf::Links links_of(const fs::path& ours) { return elf::read_links(ResolvedFile(ours, refuse_file, true)); }

Site require(const fs::path& ours, const elf::Links& links, const Wheel& wheel, const std::vector<fs::path>& sites) {
  std::optional<Site> site = by_loader(ours, links, wheel);
  if (!site) site = find(sites, wheel);
  if (!site) {
    std::vector<std::string> searched;
    for (const fs::path& each : sites) searched.push_back(each.string());
    fail(ErrorKind::config,
         "{0} {1}, which this Hexad is built with, is not in {2}: pip install {0}=={1}, or `hexad setup`", wheel.name,
         wheel.version, searched.empty() ? "any folder" : joined(searched));
  }
  if (!is_version(wheel, site->version))
    fail(ErrorKind::config,
         "{} is {} {}, and this Hexad is built with {} {}, whose C++ is another: pip install {}=={}, or `hexad setup`",
         (site->folder / wheel.name).string(), wheel.name, site->version, wheel.name, wheel.version, wheel.name,
         wheel.version);
  return *site;
}

}  // namespace

const Wheel& libtorch() {
  static const Wheel wheel = {"torch", HEXAD_BUILT_TORCH, "lib/libtorch_cpu.so", "libtorch-" HEXAD_BUILT_TORCH};
  return wheel;
}

const Wheel& arrow() {
  static const Wheel wheel = {"pyarrow", HEXAD_ARROW_VERSION, HEXAD_ARROW_LIBRARY, "arrow-" HEXAD_ARROW_VERSION};
  return wheel;
}

std::vector<fs::path> Site::libraries(const Wheel& wheel) const {
  std::vector<fs::path> folders = {(folder / wheel.name / wheel.library).parent_path()};
  for (const fs::path& each : entries(folder / "nvidia")) folders.push_back(each / "lib");
  return folders;
}

std::vector<fs::path> sites(const fs::path& home, const Wheel& wheel) {
  std::vector<fs::path> found;
  add_pythons(home, found);
  found.push_back(home / "lib/hexad/wheels");
  if (const fs::path cache = cache_folder(); !cache.empty()) found.push_back(cache / wheel.cache);
  for (const fs::path& prefix : {from_environment("HOME", ".local"), fs::path("/usr/local"), fs::path("/usr")})
    if (!prefix.empty() && prefix != home) add_pythons(prefix, found);
  return found;
}

std::optional<Site> find(const std::vector<fs::path>& sites, const Wheel& wheel) {
  std::optional<Site> other;
  for (const fs::path& folder : sites) {
    if (!is_there(folder / wheel.name)) continue;
    Site site{folder, version_in(folder, wheel)};
    const bool is_right = is_version(wheel, site.version);
    if (is_right && is_there(folder / wheel.name / wheel.library)) return site;
    // Of the right version and without its library: a source folder of that name. Another version may name its
    // libraries otherwise.
    if (!is_right && !other) other = site;
  }
  return other;
}

Site require(const fs::path& ours, const Wheel& wheel, const std::vector<fs::path>& sites) {
  return require(ours, links_of(ours), wheel, sites);
}

void open_needed(const fs::path& ours, const Wheel& wheel, int mode) {
  const elf::Links links = links_of(ours);
  const std::string known_by = fs::path(wheel.library).filename();
  if (std::ranges::find(links.needed, known_by) == links.needed.end()) return;  // linked with none of it
  const Site site = require(ours, links, wheel, sites(home(), wheel));
  if (by_loader(ours, links, wheel)) return;
  for (const fs::path& folder : site.libraries(wheel))
    for (const std::string& name : links.needed)
      if (is_there(folder / name) && !::dlopen((folder / name).c_str(), mode))
        fail(ErrorKind::config, "{} cannot be loaded: {}. `hexad doctor` says what lacks", (folder / name).string(),
             ::dlerror());
}

}  // namespace hexad::installation

#include "app/plugin/plugin.hpp"

#include <algorithm>
#include <vector>

#include "core/manifest/manifest.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::plugin {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder, bool directories) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_directory() == directories) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void check_kind(const fs::path& templates, const std::string& kind) {
  std::vector<std::string> kinds;
  for (const fs::path& folder : entries(templates, /*directories=*/true)) kinds.push_back(folder.filename().string());
  if (kinds.empty()) {
    fail(ErrorKind::config, "{}: no templates there. Install the SDK: cmake --install BUILD --prefix PREFIX",
         templates.string());
  }
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
  const std::string guess = did_you_mean(kind, kinds);
  fail(ErrorKind::config, "no template '{}'{} There are {}", kind, guess.empty() ? "." : guess, joined(kinds));
}

// Writes the template `from` into `folder`; returns the name of the new file.
std::string instantiate(const fs::path& from, const fs::path& folder, const std::string& name) {
  std::string file = replaced(from.filename().string(), "@NAME@", name);
  if (file.ends_with(".in")) file.resize(file.size() - 3);
  write_file(folder / file,
             replaced(replaced(read_file(from), "@NAME@", name), "@FOLDER@", fs::absolute(folder).string()));
  return file;
}

// A path in a shell command.
std::string quoted(const fs::path& path) {
  const std::string text = path.string();
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("/._-+@:").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// What to type next, a line each.
std::string next_commands(const fs::path& folder, const std::vector<std::string>& files, const fs::path& sdk) {
  for (const auto& [extension, interpreter] : {std::pair{".py", "python3"}, std::pair{".sh", "bash"}}) {
    const auto script = std::ranges::find_if(
        files, [&extension = extension](const std::string& file) { return file.ends_with(extension); });
    if (script != files.end())
      return fmt::format("  {} {} < {}\n", interpreter, quoted(folder / *script), quoted(folder / "test.jsonl"));
  }
  const std::string build = quoted(folder / "build");
  return fmt::format("  cmake -S {} -B {} -DHexadSDK_DIR={}\n  cmake --build {}\n  ctest --test-dir {}\n",
                     quoted(folder), build, quoted(sdk), build, build);
}

}  // namespace

int new_plugin(const fs::path& prefix, const NewPlugin& wanted, bool json, std::ostream& out) {
  const fs::path templates = prefix / "share/hexad/template", sdk = prefix / "lib/cmake/HexadSDK";
  const std::string kind = replaced(wanted.kind, "-", "_");
  check_kind(templates, kind);
  if (!valid_plugin_name(wanted.name)) {
    fail(ErrorKind::config, "the name '{}' must be 2 to 63 characters, a-z first, then a-z, 0-9 and _", wanted.name);
  }
  const fs::path folder = (wanted.into / wanted.name).lexically_normal();
  std::error_code error;
  if (!fs::create_directory(folder, error)) {
    fail(ErrorKind::config, "{}: {}. Take another name, or another place with --into", folder.string(),
         error ? error.message() : "exists already");
  }
  std::vector<std::string> files;
  std::vector<fs::path> sources = entries(templates / kind, /*directories=*/false);
  if (fs::exists(templates / kind / "CMakeLists.txt.in")) {  // what all that is compiled has
    const std::vector<fs::path> common = entries(templates, /*directories=*/false);
    sources.insert(sources.begin(), common.begin(), common.end());
  }
  for (const fs::path& source : sources) files.push_back(instantiate(source, folder, wanted.name));
  if (json) {
    out << json_text(nlohmann::ordered_json{{"folder", folder.string()}, {"files", files}, {"sdk", sdk.string()}})
        << '\n';
    return 0;
  }
  out << fmt::format("{}: {}\nnext:\n{}", folder.string(), joined(files), next_commands(folder, files, sdk));
  return 0;
}

}  // namespace hexad::plugin

#include "lib/shipped/shipped.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/installation/home.hpp"
#include "lib/yaml/file.hpp"

namespace hexad::shipped {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFromRoot = "configs/";

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

void add_names(const fs::path& folder, std::vector<std::string>& names) {
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
}

bool is_within(const fs::path& path, const fs::path& folder) {
  const fs::path inner = path.lexically_normal(), outer = folder.lexically_normal();
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void make_absolute(yaml::Node& node, const fs::path& folder) {
  if (node.is_list())
    for (yaml::Node& item : node.items()) make_absolute(item, folder);
  if (node.is_map())
    for (auto& [key, value] : node.entries()) make_absolute(value, folder);
  if (!node.is_string() || !node.as_string().starts_with(kFromRoot)) return;
  const fs::path absolute = folder / node.as_string().substr(kFromRoot.size());
  if (is_there(absolute)) node.set_value(absolute.string());
}

}  // namespace

fs::path folder() { return installation::home() / "share/hexad/configs"; }

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> names;
  add_names(folder, names);
  add_names(folder / "recipes", names);
  std::ranges::sort(names);
  return names;
}

fs::path file_of(const fs::path& path, const fs::path& written, const fs::path& folder) {
  std::error_code unreadable;
  const bool is_word = !written.empty() && !written.has_parent_path() && !written.has_extension();
  if (!is_word || (is_there(path) && !fs::is_directory(path, unreadable))) return path;
  const fs::path file = path.string() + ".yaml", name = written.string() + ".yaml";
  for (const fs::path& place : {folder / name, folder / "recipes" / name})
    if (is_there(place)) return place;
  const std::vector<std::string> known = names(folder);
  if (known.empty() || is_there(path)) return path;  // whoever reads it says what it is
  const std::string near =
      is_there(file) ? ", did you mean " + file.string() + "?" : did_you_mean(written.string(), known);
  fail(ErrorKind::config, "{}: no such file{} By name there are the configurations that came with Hexad: {}",
       path.string(), near.empty() ? "." : near, joined(known));
}

yaml::Node read_file(const fs::path& path, const fs::path& folder) {
  yaml::Node file = yaml::read_file(path);
  if (is_within(path, folder)) make_absolute(file, folder);
  return file;
}

}  // namespace hexad::shipped

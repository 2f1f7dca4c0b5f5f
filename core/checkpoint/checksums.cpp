#include "core/checkpoint/checksums.hpp"

#include <algorithm>
#include <set>

#include "lib/base/background.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/resolved_file.hpp"
#include "lib/base/json_integer.hpp"

namespace hexad::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A pipe or a folder under a file's name is refused, and nobody waits for it.
ResolvedFile opened(const fs::path& file) { return ResolvedFile(file, refuse_file, /*trusted=*/true); }

// Weights beside those that were saved: readers of a folder would take them first.
void add_strange_weights(const fs::path& directory, const FileSums& saved, std::vector<std::string>& lines) {
  std::set<fs::path> folders;
  for (const auto& [path, sum] : saved) folders.insert(fs::path(path).parent_path());
  std::error_code unreadable;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(directory / folder, unreadable)) continue;
    for (const fs::directory_entry& entry : entries_of(directory / folder)) {
      const std::string name = (folder / entry.path().filename()).string();
      const bool is_weights = name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
      if (is_weights && !saved.contains(name)) lines.push_back(name + " was not saved with it: move it away");
    }
  }
}

std::string damage_of(const fs::path& file, const FileSum& saved) {
  try {
    std::error_code unreadable;
    if (!fs::exists(file, unreadable) && !unreadable) return "is missing";
    const ResolvedFile now = opened(file);
    if (now.size() != saved.bytes) return fmt::format("has {} bytes, {} were saved", now.size(), saved.bytes);
    if (saved.sha256.empty()) return "";
    const std::string sha256 = now.sha256();
    return sha256 == saved.sha256 ? "" : fmt::format("has sha256 {}, saved was {}", sha256, saved.sha256);
  } catch (const std::exception& error) {
    return fmt::format("cannot be read ({})", error.what());
  }
}

}  // namespace

bool has_checksums(const FileSums& sums) {
  return std::ranges::any_of(sums, [](const auto& file) { return !file.second.sha256.empty(); });
}

Json to_json(const FileSums& sums) {
  Json json = Json::object();
  for (const auto& [path, sum] : sums) {
    json[path]["bytes"] = sum.bytes;
    if (!sum.sha256.empty()) json[path]["sha256"] = sum.sha256;
  }
  return json;
}

FileSums sums_from(const Json& json) {
  FileSums sums;
  for (const auto& [path, sum] : json.items())
    sums[path] = {integer<uint64_t>(sum.at("bytes")), sum.value("sha256", std::string())};
  return sums;
}

FileSums sums_of(const fs::path& directory, bool sha256, tensorfile::GrowingSums* growing) {
  auto followed = growing ? growing->finish() : std::map<fs::path, tensorfile::GrownFile>();
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries_below(directory))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::vector<FileSum> sums(files.size());
  std::vector<std::string> errors(files.size());
  in_background(files.size(), [&](size_t i) {
    try {
      const ResolvedFile now = opened(files[i]);
      const auto known = followed.find(files[i]);
      const bool is_known = known != followed.end() && known->second.bytes == now.size();
      sums[i] = {now.size(), is_known ? known->second.sha256 : sha256 ? now.sha256() : ""};
    } catch (const std::exception& error) {
      errors[i] = error.what();
    }
  });
  FileSums result;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!errors[i].empty()) throw Error(ErrorKind::data, errors[i]);
    result[files[i].lexically_relative(directory).string()] = std::move(sums[i]);
  }
  return result;
}

std::vector<std::string> damage(const fs::path& directory, const FileSums& saved) {
  const std::vector<std::pair<std::string, FileSum>> files(saved.begin(), saved.end());
  std::vector<std::string> lines(files.size());
  in_background(files.size(), [&](size_t i) {
    const std::string what = damage_of(directory / files[i].first, files[i].second);
    if (!what.empty()) lines[i] = files[i].first + " " + what;
  });
  std::erase(lines, "");
  add_strange_weights(directory, saved, lines);
  return lines;
}

}  // namespace hexad::checkpoint

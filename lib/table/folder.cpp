#include "lib/table/folder.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/table/container.hpp"

namespace hexad::table {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Files = std::vector<fs::path>;

// What `datasets` writes beside the rows of save_to_disk.
constexpr const char* kState = "state.json";
constexpr const char* kSplits = "dataset_dict.json";

// Files that say something of a data set: the names that Hugging Face leaves out too.
bool is_about_data(const std::string& name) {
  constexpr std::array<std::string_view, 5> kNames = {"config.json", "dataset_info.json", "dataset_infos.json", kState,
                                                      kSplits};
  return std::ranges::find(kNames, name) != kNames.end();
}

Files files_in(const fs::path& folder, const std::string& prefix) {
  Files files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::string name = entry.path().filename();
    if (container_of(name) && !is_about_data(name) && name.starts_with(prefix) && is_to_be_read(entry))
      files.push_back(entry.path());
  }
  return files;
}

Files named_after(const fs::path& folder, const std::string& split) {
  for (const auto& [where, prefix] : {std::pair{folder, split + "."},
                                      {folder, split + "-"},
                                      {folder / "data", split + "."},
                                      {folder / "data", split + "-"},
                                      {folder / split, std::string()}}) {
    Files files = files_in(where, prefix);
    if (!files.empty()) return files;
  }
  if (split == "train") return files_in(folder, "");
  return {};
}

// Some may hold the same rows in another form.
void require_one_container(const fs::path& folder, const Files& files) {
  std::map<std::string, fs::path> kinds;
  for (const fs::path& file : files) {
    const Container container = *container_of(file);
    kinds.emplace(fmt::format("{} {}", name_of(container.form), name_of(container.packing)), file.filename());
  }
  if (kinds.size() < 2) return;
  std::vector<std::string> names;
  for (const auto& [kind, name] : kinds) names.push_back(name.string());
  fail(ErrorKind::data,
       "{}: files of several kinds, perhaps of the same rows: {}. Name the file that is meant (data_path), or keep "
       "those "
       "of one kind in a folder of their own",
       folder.string(), joined(names));
}

Files saved_files(const fs::path& folder) {
  const fs::path state = folder / kState;
  const Json json = read_json<Json>(state);
  Files files;
  const auto found = json.is_object() ? json.find("_data_files") : json.end();
  if (json.is_object() && found != json.end() && found->is_array()) {
    for (const Json& entry : *found) {
      const bool named = entry.is_object() && entry.contains("filename") && entry.at("filename").is_string();
      const fs::path name = named ? entry.at("filename").get<std::string>() : "";
      if (name.empty() || name != name.filename())
        fail(ErrorKind::data, "{}: _data_files: want the name of a file in this folder, got {}", state.string(),
             json_text(entry));
      files.push_back(folder / name);
    }
  }
  if (files.empty()) fail(ErrorKind::data, "{}: it names no files of rows (_data_files)", state.string());
  if (const auto indices = json.find("_indices_data_files"); indices != json.end() && !indices->empty())
    fail(ErrorKind::data, "{}: rows chosen by indices are not read; save it again after flatten_indices()",
         state.string());
  return files;
}

// Of a DatasetDict: the folder of the split.
fs::path saved_split(const fs::path& folder, const std::string& split) {
  const fs::path list = folder / kSplits;
  const Json json = read_json<Json>(list);
  std::vector<std::string> names;
  if (json.is_object() && json.contains("splits") && json.at("splits").is_array()) {
    for (const Json& name : json.at("splits")) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  if (std::ranges::find(names, split) == names.end())
    fail(ErrorKind::data, "{}: no split '{}'; it has: {}", list.string(), split, joined(names));
  return folder / split;
}

}  // namespace

Files files_of_split(const fs::path& folder, const std::string& split) {
  std::error_code unreadable;
  if (fs::exists(folder / kSplits, unreadable)) return saved_files(saved_split(folder, split));
  if (fs::exists(folder / kState, unreadable)) return saved_files(folder);
  Files files = named_after(folder, split);
  if (files.empty())
    fail(ErrorKind::data, "{}: no file for split '{}'; want {}.jsonl, data/{}-*.parquet or {}/*.csv ({}); it holds {}",
         folder.string(), split, split, split, split, kContainers, listing_of(folder));
  require_one_container(folder, files);
  return files;
}

}  // namespace hexad::table

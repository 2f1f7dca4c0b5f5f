#include "lib/table/folder.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

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

// The split that a file or folder is named after, by the words that tell Hugging Face one: its name as far as the '-'
// or '.' behind the word, "train_sft" of train_sft-00000-of-00003.parquet. "": none.
std::string split_in(const std::string& name) {
  constexpr std::array<std::string_view, 10> kWords = {"train", "training", "validation", "valid", "val",
                                                       "dev",   "test",     "testing",    "eval",  "evaluation"};
  constexpr std::string_view kBetween = "-._ 0123456789";
  const auto is_letter = [&](size_t at) { return at < name.size() && kBetween.find(name[at]) == kBetween.npos; };
  for (const std::string_view word : kWords) {
    for (size_t at = 0; (at = name.find(word, at)) != name.npos; ++at) {
      const size_t end = at + word.size();
      if ((at == 0 || !is_letter(at - 1)) && !is_letter(end)) return name.substr(0, name.find_first_of(".-", end));
    }
  }
  return "";
}

// Folders in it that have files: by `find`, which is given each.
template <typename Find>
std::vector<std::string> folders_in(const fs::path& folder, const Find& find) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    std::error_code unreadable;
    if (!entry.is_directory(unreadable)) continue;
    try {
      if (!find(entry.path()).empty()) names.push_back(entry.path().filename());
    } catch (const Error&) {  // one that nobody may look into has none
    }
  }
  return names;
}

// The splits that it has by the names of files and folders, each of which can be asked for.
std::set<std::string> splits_in(const fs::path& folder) {
  std::set<std::string> splits;
  for (const fs::path& where : {folder, folder / "data"}) {
    for (const fs::path& file : files_in(where, "")) splits.insert(split_in(file.filename()));
  }
  for (const std::string& name : folders_in(folder, [](const fs::path& inner) { return files_in(inner, ""); })) {
    if (!split_in(name).empty()) splits.insert(name);
  }
  splits.erase("");
  return splits;
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
  const auto trains = [](const std::string& name) { return name.find("train") != name.npos; };
  if (split == "train" && std::ranges::all_of(splits_in(folder), trains)) return files_in(folder, "");
  return {};
}

// ".json", ".csv.gz" ...
std::string suffix_of(const fs::path& file) {
  const fs::path stem = container_of(file)->packing == Packing::none ? fs::path() : file.stem();
  return stem.extension().string() + file.extension().string();
}

// Some may hold the same rows in another form.
void require_one_container(const fs::path& folder, const Files& files) {
  std::map<std::string, fs::path> kinds;
  for (const fs::path& file : files) kinds.emplace(suffix_of(file), file.filename());
  if (kinds.size() < 2) return;
  std::vector<std::string> names;
  for (const auto& [kind, name] : kinds) names.push_back(name.string());
  fail(ErrorKind::data,
       "{}: files of several kinds, perhaps of the same rows: {}. Name the file that is meant (data_path), or keep "
       "those of one kind in a folder of their own",
       folder.string(), joined(names));
}

[[noreturn]] void refuse_split(const fs::path& folder, const std::string& split) {
  const std::set<std::string> splits = splits_in(folder);
  const auto of_split = [&](const fs::path& inner) {
    return split_in(inner.filename()).empty() ? named_after(inner, split) : Files();
  };
  const std::vector<std::string> subsets = folders_in(folder, of_split);
  fail(ErrorKind::data,
       "{0}: no file for split '{1}'; want {1}.jsonl, data/{1}-*.parquet or {1}/*.csv ({2}); it holds {3}{4}{5}",
       folder.string(), split, kContainers, listing_of(folder),
       splits.empty() ? "" : "; splits that it has (split): " + joined(splits),
       subsets.empty() ? "" : "; folders in it that have such files (subset): " + joined(subsets));
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
  if (files.empty()) refuse_split(folder, split);
  require_one_container(folder, files);
  return files;
}

}  // namespace hexad::table

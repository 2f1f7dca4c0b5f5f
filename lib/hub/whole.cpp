#include "lib/hub/whole.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/pattern.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/hub/numbered.hpp"

namespace hexad::hub {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// What readers of a model's folder open: weights of other formats and their folders stay unread.
bool is_read_of_model(const std::string& name) {
  return ends_with_any(name, {".json", ".safetensors", ".jinja", ".txt", ".model"});
}

bool has_weights(const std::set<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    return ends_with_any(name, {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".ckpt", ".onnx",
                                ".distcp", ".nemo"});
  });
}

// The file of a download that has not ended, or that somebody has broken off; empty where there is none.
std::string unfinished(const fs::path& snapshot) {
  const fs::path blobs = snapshot.parent_path().parent_path() / "blobs";
  std::error_code absent;
  if (!fs::is_directory(blobs, absent)) return "";
  for (const fs::directory_entry& entry : entries_of(blobs))
    if (entry.path().extension() == ".incomplete") return entry.path().string();
  return "";
}

// Names below the snapshot of what its reader opens: links that lead to nothing too, and of data sets those to folders.
std::set<std::string> files_of(Use use, const fs::path& snapshot) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : use == Use::data ? entries_below(snapshot) : entries_of(snapshot))
    if (is_to_be_read(entry) || (use == Use::data && entry.is_symlink()))
      names.insert(entry.path().lexically_relative(snapshot).string());
  return names;
}

// Of the files that the index names; which of them may be none is the reader's to say.
std::string missing_shard(const fs::path& snapshot, const std::set<std::string>& names) {
  const json index = try_parse_json<json>(read_own_file(snapshot, kIndex));
  std::set<std::string> shards;
  if (index.is_object() && index.contains("weight_map"))
    for (const auto& shard : index.at("weight_map"))
      if (shard.is_string()) shards.insert(shard.get<std::string>());
  for (const std::string& shard : shards)
    if (fs::path(shard).filename() == shard && !names.contains(shard)) return shard;
  return "";
}

// As lib/tensorfile chooses: model.safetensors, else the shards of the index.
std::string missing_weights(const fs::path& snapshot, const std::set<std::string>& names, bool needed) {
  static const Pattern shard("model-[0-9]+-of-[0-9]+\\.safetensors");
  if (names.contains("model.safetensors")) return "";
  if (names.contains(kIndex)) return missing_shard(snapshot, names);
  if (std::ranges::any_of(names, [](const std::string& name) { return shard.matches(name); })) return kIndex;
  return needed && !has_weights(names) ? "model.safetensors" : "";
}

// Another format of tokenizers is the reader's to name.
std::string missing_tokenizer(const std::set<std::string>& names) {
  const auto is_one = [](const std::string& name) {
    return name == "tokenizer.json" || name == "vocab.json" || name == "vocab.txt" || name.ends_with(".model") ||
           name.ends_with(".tiktoken");
  };
  return std::ranges::any_of(names, is_one) ? "" : "tokenizer.json";
}

std::string missing(Use use, const fs::path& snapshot, const std::set<std::string>& names) {
  switch (use) {
    case Use::tokenizer: return missing_tokenizer(names);
    case Use::data: return missing_part(names);
    default: break;
  }
  if (!names.contains("config.json")) return has_weights(names) ? "" : "config.json";
  return missing_weights(snapshot, names, use == Use::weights);
}

[[noreturn]] void refuse_part(Use use, const Repository& repository, const fs::path& snapshot,
                              const std::string& what) {
  fail(ErrorKind::data, "{} is there in part: {}. Fetch the rest: {}{}", snapshot.string(), what,
       repository.fetch_line(),
       use == Use::data ? fmt::format(". To read what is there, name the folder: {}", snapshot.string()) : "");
}

void check_link(Use use, const Repository& repository, const fs::path& snapshot, const std::string& name) {
  std::error_code unreadable;
  if (!fs::is_symlink(snapshot / name, unreadable)) return;
  if (!fs::exists(snapshot / name, unreadable))
    refuse_part(use, repository, snapshot, fmt::format("{} is a link to nothing", one_line(name)));
  if (const fs::path real = leads_out(snapshot, name); !real.empty())
    fail(ErrorKind::data,
         "{} is a link to {}, and files of a snapshot lie in it or in the blobs of {}. Remove the link, and fetch the "
         "file: {}",
         (snapshot / one_line(name)).string(), one_line(real.string()),
         snapshot.parent_path().parent_path().filename().string(), repository.fetch_line());
}

}  // namespace

void require_whole(Use use, const Repository& repository, const fs::path& snapshot) {
  const std::set<std::string> names = files_of(use, snapshot);
  for (const std::string& name : names)
    if (use == Use::data || is_read_of_model(name)) check_link(use, repository, snapshot, name);
  const std::string file = missing(use, snapshot, names), download = unfinished(snapshot);
  if (!file.empty())
    refuse_part(use, repository, snapshot,
                one_line(file) + " is missing" +
                    (download.empty() ? "" : fmt::format(", and a download has not ended ({})", one_line(download))));
  // Of rows nothing else says how many files there are.
  if (use == Use::data && !download.empty())
    refuse_part(use, repository, snapshot, fmt::format("a download has not ended ({})", one_line(download)));
}

}  // namespace hexad::hub
